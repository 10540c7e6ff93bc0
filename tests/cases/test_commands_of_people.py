"""Field reports: a person decides from another terminal, and cuts a history. SPEC F4, F6, F17."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.application.turn_context import ContextChoice
from safepoint.domain.replay.items import CallItem, ResultItem

from ..adapters.cli.program import PAY, WRITE, Program
from ..adapters.cli.test_deciding import asked
from ..application.counted_tools import Counted
from ..application.wiring import Process, go
from .programs import DONE, SESSION, codes_in, offered, resume

Dies = Callable[..., str]


@pytest.fixture
def dies_waiting(program: Program) -> Iterator[Dies]:
    """Kills a run that waits for a person at another terminal; gives the id of its only open question."""
    started: list[subprocess.Popen[str]] = []

    def die(*steps: dict[str, Any], policy: tuple[str, ...] = ()) -> str:
        program.script(*steps, DONE)
        process = program.start(*program.run("--session", SESSION, "--ask-elsewhere", *policy))
        started.append(process)
        deadline = time.monotonic() + 30
        while not (waiting := asked(program)) or program("status", "--json").document["unsettled"]:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        process.communicate()
        (request_id,) = waiting
        return request_id

    yield die
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def facts_of(program: Program, kind: str) -> list[dict[str, Any]]:
    """The facts of a kind in all runs of the session."""
    found: list[dict[str, Any]] = []
    for run in program("show", SESSION, "--json").document["runs"]:
        facts = program("show", SESSION, "--run", run["run_id"], "--json").document["run"]["facts"]
        found += [fact["facts"] for fact in facts if fact["type"] == kind]
    return found


def test_r3_034_approving_the_call_that_waits_runs_it_once_and_its_finished_sibling_not_again(
    program: Program, dies_waiting: Dies
) -> None:
    """step{A, B needs approval}; O(A); X; approve B; resume. A is allowed by name."""
    both = {"text": "I do both.", "calls": [WRITE, PAY]}
    request_id = dies_waiting(both, {"text": "Now it is permitted.", "calls": [PAY]}, policy=("--allow", "write_file"))
    assert program("approve", request_id).code == 0
    assert program(*resume(program)).code == 0
    assert program.effects == ["paid"]
    dispatched = [fact["tool_name"] for fact in facts_of(program, "tool.dispatched.v1")]
    assert dispatched == ["write_file", "record_effect"]


def test_r3_036_a_call_that_was_denied_cannot_be_approved_when_its_run_is_over(
    program: Program, dies_waiting: Dies
) -> None:
    """step{A}; denied(A); closed. Then approve A, again and again."""
    request_id = dies_waiting({"text": "I pay.", "calls": [PAY]})
    assert program("deny", request_id).code == 0
    assert program(*resume(program)).code == 0
    for _ in range(2):
        late = program("approve", request_id, "--session", SESSION, "--json")
        assert (late.code, late.document["result"], late.document["approved"]) == (2, "already_decided", False)
    assert codes_in(program(*resume(program), "--json")) == ["resume_candidate_missing"]
    assert program.effects == []
    assert [fact["approved"] for fact in facts_of(program, "permission.decided.v1")] == [False]


def test_r3_113_the_plan_after_an_approval_is_the_same_whatever_else_is_passed_and_asks_no_second_time(
    program: Program, dies_waiting: Dies
) -> None:
    """approval-request(A); X; approved(A); plan and resume with and without more options."""
    request_id = dies_waiting({"text": "I pay.", "calls": [PAY]}, {"text": "I pay now.", "calls": [PAY]})
    assert program("approve", request_id).code == 0
    plans = [
        program("plan", SESSION, "--script", program.folder / "script.json", *more, "--json").document
        for more in ((), ("--accept-drift", "model"), ("--ask-elsewhere",))
    ]
    assert [plan["decision"] for plan in plans] == ["continue"] * 3
    assert len({plan["replay_digest"] for plan in plans}) == 1
    assert program(*resume(program)).code == 0
    assert program.effects == ["paid"]
    assert len(facts_of(program, "permission.requested.v1")) == 1


def test_r3_115_after_a_restart_the_question_is_listed_under_its_own_id_and_is_answered(
    program: Program, dies_waiting: Dies
) -> None:
    """approval-request(A) durable; X; look; approve."""
    request_id = dies_waiting({"text": "I pay.", "calls": [PAY]}, {"text": "I pay now.", "calls": [PAY]})
    parked = program(*resume(program), "--json")
    assert (parked.code, codes_in(parked)) == (3, ["pending_permission"])
    assert program("list", "--json").document["sessions"][0]["state"] == "failed", "it is parked, not running"
    assert [one["request_id"] for one in program("list", "--json").document["permissions"]] == [request_id]
    (approve,) = [command for command in offered(parked) if " approve " in command]
    assert program.bare(*approve.split()[1:]).code == 0
    assert program(*resume(program)).code == 0
    assert program.effects == ["paid"]


def test_r3_118_a_call_that_was_declined_is_not_run_although_the_policy_that_asked_is_not_there(
    program: Program, dies_waiting: Dies
) -> None:
    """approval-request(A); X; denied(A); the resume allows everything: it is a wider policy, and parks."""
    request_id = dies_waiting({"text": "I pay.", "calls": [PAY]}, {"text": "Then I try again.", "calls": [PAY]})
    assert program("deny", request_id).code == 0
    assert codes_in(program(*resume(program), "--allow-all", "--json")) == ["execution_profile_mismatch"]
    assert program(*resume(program)).code == 0
    assert program.effects == []
    codes = [fact["code"] for fact in facts_of(program, "tool.responded.v1")]
    assert codes == ["not_executed_interrupted", "permission_denied"]


def test_r3_152_a_session_that_is_too_large_goes_on_by_the_command_that_is_offered(program: Program) -> None:
    """History larger than the window; X; the listed options work, and the store stays readable and exportable."""
    steps = ({"text": "x" * 4_000}, {"text": "I look.", "calls": [{"tool": "list_files"}]}, DONE)
    program.script(*steps, window_tokens=100_000)
    assert program(*program.run("--session", SESSION)).code == 0
    program.killed_at("P7", *program.run("--session", SESSION))
    program.script(*steps, window_tokens=500)
    parked = program(*resume(program), "--json")
    assert codes_in(parked) == ["history_too_large"]
    (reason,) = parked.document["reasons"]
    assert reason["detail"]["have"] > reason["detail"]["limit"] == 500
    assert program("export", SESSION, "--out", program.folder / "s1.jsonl").code == 0
    (cut,) = [command for command in offered(parked) if "--context-turns fit" in command]
    went = program.bare("run", "Go on.", *cut.split("MESSAGE'")[1].split())
    assert went.code == 0, went
    assert "Turns that are missing: 1." in went.err


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 3))), min_size=1, max_size=5))
def test_r3_011_wherever_a_person_cuts_no_result_outlives_its_call(turns: list[tuple[int, int | None]]) -> None:
    """Turns of some calls each, cut again and again on turn borders: every result that is shown has its call."""
    process, act = Process(), Counted()
    for wanted, kept in turns:
        steps = [calls(("act", {"n": 1})) for _ in range(wanted)]
        model = PlannedModel([*steps, says("ok")])
        go(partial(process.turn, "go", model, [act.function], context=ContextChoice(kept)))
        for one in model.asked:
            items = one.request.history
            called = [item.call_id for item in items if isinstance(item, CallItem)]
            answered = [item.call_id for item in items if isinstance(item, ResultItem)]
            assert called == answered
            assert len(set(called)) == len(called)
