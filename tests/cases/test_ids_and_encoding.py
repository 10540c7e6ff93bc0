"""Field reports: names, ids, numbers and texts that some layer could not keep. SPEC sections 4 and 6."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.domain import canonical
from safepoint.domain.events.tool import Effect
from safepoint.domain.reasons import ResponseCode, WriteRefusal
from safepoint.ports.model_step import CallBlock, StepFinished

from ..adapters.cli.program import Program
from ..application.counted_tools import returning
from ..application.wiring import check_sound
from ..domain.facts import Facts
from .programs import DONE
from .resuming import ResumingProcess
from .stores import Writing


def step(*blocks: CallBlock) -> StepFinished:
    return StepFinished(blocks=blocks, finish_reason="tool_calls", model="planned")


def test_r3_031_a_second_outcome_of_one_call_is_refused_and_the_same_bytes_again_are_nothing_new(
    writing: Writing,
) -> None:
    """U; step{A}; D(A); O(A); closed; a late writer appends O(A) again with other content."""
    run = writing.own(Facts("r", session="s"))
    writing.do(run.open_run(), run.record(run.step("A")), run.prepare(run.dispatch("A")))
    first = run.commit(run.outcome("A"))
    writing.do(first)
    assert writing.refuses(run.commit(run.outcome("A", result="other"))) is WriteRefusal.TRANSITION_SHAPE_CONFLICT
    writing.do(run.end())
    before = writing.events(run)
    again = writing.another().ledger.execute(first)
    assert not again.first
    assert writing.refuses(run.commit(run.outcome("A", result="other"))) is WriteRefusal.RUN_SEALED
    same_id = run.outcome("A", result="other", event_id=first.response.event_id)
    assert writing.refuses(run.commit(same_id)) is WriteRefusal.RETRY_CONFLICT
    assert writing.events(run) == before
    assert writing.verdict(run, "A").response_event_id == first.response.event_id


@pytest.mark.parametrize(
    "value", [{"id": 107505301260286111}, {"f": float("inf")}, {"f": float("nan")}], ids=["integer", "inf", "nan"]
)
def test_r3_101_a_number_that_would_be_rounded_is_never_kept_as_another(value: dict[str, Any]) -> None:
    """O(A)={'id': 107505301260286111}, or NaN, or Infinity: refused and said; the effect did happen."""
    process = ResumingProcess()
    model = PlannedModel([calls(("give", {})), says("I see")])
    result = process.runs("go", model, [returning(value)])
    response = process.response(result.run_id, "give")
    assert (response.code, response.effect) == (ResponseCode.RESULT_NOT_STRICT_JSON, Effect.DONE)
    stored = b"".join(process.stored_bytes(result.run_id))
    assert b"107505301260286100" not in stored
    assert b"107505301260286112" not in stored
    check_sound(process, result.run_id)


@pytest.mark.parametrize("value", ["107505301260286111", 0.1, 1e21, 2**53 - 1, -(2**53 - 1)])
def test_r3_101_what_is_kept_is_the_same_after_a_round_trip_through_another_reader(value: object) -> None:
    """The digest of a result is over its canonical form, which a browser's JSON reproduces."""
    process = ResumingProcess()
    result = process.runs("go", [calls(("give", {})), says("done")], [returning({"id": value})])
    kept = process.response(result.run_id, "give").result
    once = canonical.encode(kept)
    assert canonical.encode(canonical.decode(once)) == once
    assert kept == {"id": value}


def test_r3_100_nulls_and_empty_values_are_shown_and_break_no_view(program: Program) -> None:
    """O(A) with nulls in every optional field, an empty text, an empty list: the program shows them."""
    empty = {"path": "empty.txt"}
    (program.workspace / "empty.txt").write_text("")
    quiet = {"tool": "run_shell", "args": {"command": ":"}}
    read = {"tool": "read_file", "args": empty}
    program.script({"text": "I look.", "calls": [read, quiet]}, DONE)
    assert program(*program.run("--session", "s1")).code == 0
    shown = program("show", "s1", "--full", "--json").document["run"]
    results = {fact["facts"]["tool_name"]: fact for fact in shown["facts"] if fact["type"] == "tool.responded.v1"}
    assert '"signal":null' in results["run_shell"]["content"]["result"]["text"]
    for form in ((), ("--full",), ("--json",), ("--full", "--json")):
        assert program("show", "s1", *form).code == 0
    assert "run_shell" in program("show", "s1", "--full").out


@pytest.mark.parametrize("text", ["😀", "🇩🇪", "e\u0301"], ids=["emoji", "flag", "combining mark"])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_r3_098_an_output_that_is_cut_is_a_prefix_on_a_border_of_characters(text: str, offset: int) -> None:
    """Output of 'a'*(limit-1)+'😀', at every offset of the limit, through the whole runtime."""
    from safepoint.domain.tool_results import RESULT_BYTES_MAX

    whole = "a" * (RESULT_BYTES_MAX - 2 - offset) + text * 2
    process = ResumingProcess()
    result = process.runs("go", [calls(("give", {})), says("done")], [returning(whole)])
    response = process.response(result.run_id, "give")
    assert isinstance(response.result, str)
    assert whole.startswith(response.result)
    assert len(canonical.encode(response.result)) <= RESULT_BYTES_MAX
    assert response.original_length == len(whole.encode())
    assert response.code == ResponseCode.RESULT_TOO_LARGE
