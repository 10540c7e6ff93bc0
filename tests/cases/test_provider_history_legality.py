"""Field reports: a history that the provider refuses, for good. SPEC section 12, F2, F4, F10."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain.replay.context import project_context
from safepoint.domain.replay.history import replay
from safepoint.domain.replay.legality import check_provider_legality

from ..adapters.cli.program import WRITE, Program
from ..crash.harness.record import read_record
from ..domain.replay.story import Story, call, say
from .programs import codes_in, interrupted, resume


def shown_to_the_model(program: Program) -> tuple[list[str], list[str]]:
    """The ids of calls and of results in the newest request; the provider checks the order as strict ones do."""
    last = json.loads((program.folder / "requests.log").read_text().splitlines()[-1])
    assert "refused" not in last, last
    return last["calls"], last["results"]


def test_r3_001_after_a_stop_in_the_middle_of_a_call_the_next_message_is_accepted(program: Program) -> None:
    """U; step{A=shell}; D(A); a person stops it, no O(A); then a new user text."""
    shell = {"tool": "run_shell", "args": {"command": "echo paid >> effects.log"}}
    interrupted(program, "P3", shell)
    assert program("cancel", "s1", "--json").document["result"] == "closed"
    assert codes_in(program(*resume(program), "--json")) == ["dangling_tool_state"]
    program.script({"text": "I do it.", "calls": [shell]}, {"text": "I leave it."})
    assert program(*program.run("--session", "s1")).out == "I leave it.\n"
    assert shown_to_the_model(program) == (["call_1_1"], ["call_1_1"])
    assert len(read_record(program.store).of_session("s1", "tool.dispatched.v1")) == 1


def test_r3_003_a_call_that_was_never_dispatched_stands_in_no_later_messages_way(program: Program) -> None:
    """U; step{A} (no D(A)); X; a new run with user text U2. No call without a result, and no old fact changes."""
    interrupted(program, "P1", WRITE)
    before = read_record(program.store)
    assert program(*program.run("--session", "s1")).out == "All done.\n"
    calls, results = shown_to_the_model(program)
    assert calls == results == ["call_1_1"]
    assert read_record(program.store).begins_with(before)
    assert [fact["text"] for fact in read_record(program.store).of_session("s1", "message.user.v1")] == ["Do it."] * 2
    assert not (program.workspace / "config.json").exists()


TURNS = st.lists(
    st.lists(st.sampled_from(["pair", "pair with a summary inside", "two at once", "text", "summary"]), max_size=4),
    min_size=1,
    max_size=5,
)


@given(TURNS, st.integers(0, 5))
def test_r3_011_wherever_a_history_is_cut_no_result_outlives_its_call(turns: list[list[str]], kept: int) -> None:
    """Summaries between a call and its result, and history that begins later: orphans are never shown.

    A summary is a message of the host; what a summary replaces is whole turns (SPEC section 12, a cut context).
    """
    told = []
    for number, parts in enumerate(turns):
        run = Story(f"r{number}").user("U")
        for place, part in enumerate(parts):
            name = f"c{number}-{place}"
            match part:
                case "pair":
                    run.step(call(name)).run_tool(name)
                case "pair with a summary inside":
                    run.step(call(name)).dispatch(name).host("summary").outcome(name)
                case "two at once":
                    run.step(call(name), call(f"{name}b")).dispatch(name, f"{name}b").host("S1").outcome(
                        f"{name}b", name
                    )
                case "text":
                    run.step(say("M"))
                case _:
                    run.host("summary")
        told.append(run.end())
    items = replay(project_context([[run.part_of_turn()] for run in told[-kept:]]).segments, None).items
    assert check_provider_legality(items) is None
    calls = [item.call_id for item in items if item.kind == "call"]
    assert sorted(calls) == sorted(item.call_id for item in items if item.kind == "result")


def test_r3_016_every_fact_is_replayed_in_the_order_of_the_ledger_whatever_it_might_point_to() -> None:
    """U; an error notice; M (the good answer); U2: nothing that was said falls out, because no fact has a parent."""
    first = Story("r1").user("U").host("502, asking again").step(say("M")).end()
    second = Story("r2").user("U2")
    items = replay(project_context([[first.part_of_turn()], [second.part_of_turn()]]).segments, None).items
    assert [item.text for item in items] == ["U", "502, asking again", "M", "U2"]  # type: ignore[union-attr]
