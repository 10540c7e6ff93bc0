"""Field reports: an answer that was cut off in the middle. SPEC R13, F5."""

from __future__ import annotations

import json

import pytest

from safepoint.adapters.memory.model_provider import BreaksOff, PlannedModel, calls, says
from safepoint.domain.events.run import RunEnded, RunError, RunStatus
from safepoint.domain.events.tool import ToolCalled
from safepoint.domain.reasons import FailureClass, ResponseCode
from safepoint.ports.model_step import CallBlock, StepFinished
from safepoint.ports.provider_failures import ProviderStreamIncomplete

from ..adapters.cli.program import PAY, WRITE, Program
from ..application.counted_tools import Counted
from ..application.wiring import SESSION, check_sound
from ..crash.harness.program import wait_for
from ..crash.harness.record import read_record
from .programs import DONE, codes_in, resume
from .resuming import ResumingProcess, SharedWorld

CUT = '{"path":"a","content":"line1'
INCOMPLETE = ProviderStreamIncomplete("the stream ended")


def test_r3_106_cut_arguments_are_never_mended_into_a_call() -> None:
    """The stream ends within the arguments: no call, no dispatch, no body, and nothing of it in a replay."""
    act, model = Counted(), PlannedModel([BreaksOff(CUT, INCOMPLETE)])
    process = ResumingProcess()
    result = process.runs("go", model, [act.function])
    assert (result.outcome.status, result.outcome.failure) == ("failed", FailureClass.PROVIDER_STREAM_INCOMPLETE)
    assert process.of(result.run_id, ToolCalled) == []
    again = PlannedModel([says("done")])
    process.continues(again, [act.function])
    assert [item.kind for item in again.asked[0].request.history] == ["user"]
    assert act.calls == []


def test_r3_106_arguments_that_were_cut_for_length_are_refused_and_not_salvaged() -> None:
    act = Counted()
    cut = StepFinished(blocks=(CallBlock("c1", "act", '{"n":1'),), finish_reason="length", model="planned")
    process = ResumingProcess()
    result = process.runs("go", [cut, says("I see")], [act.function])
    assert process.response(result.run_id, "act").code == ResponseCode.ARGS_NOT_STRICT_JSON
    assert (act.calls, process.dispatches(result.run_id)) == ([], [])
    check_sound(process, result.run_id)


def test_r3_108_a_stream_that_is_cut_again_and_again_costs_one_failure_fact_each_time() -> None:
    """The provider cuts the stream inside the arguments three times in a row."""
    world, act = SharedWorld(), Counted()
    process = ResumingProcess(world)
    cut = BreaksOff(CUT, INCOMPLETE)
    run_ids = [process.runs("go", [calls(("act", {"n": 1})), cut], [act.function]).run_id]
    run_ids += [process.continues([cut], [act.function]).run_id for _ in range(2)]
    for run_id in run_ids:
        assert [fact.code for fact in process.of(run_id, RunError)] == [FailureClass.PROVIDER_STREAM_INCOMPLETE]
        (end,) = process.of(run_id, RunEnded)
        assert end.failure_class == FailureClass.PROVIDER_STREAM_INCOMPLETE
        kinds = process.topics(run_id)
        assert run_id == run_ids[0] or kinds[:3] == ["continuation.started", "run.error", "run.ended"]
        assert kinds[-1] == ("run.ended" if run_id == run_ids[-1] else "run.claimed")
    assert process.continues([says("done")], [act.function]).outcome.status is RunStatus.COMPLETED
    assert act.calls == [1]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_r3_110_why_a_step_stopped_is_durable_and_told_by_the_plan(program: Program, finish: str) -> None:
    """A step ends with finish=length; X; resume."""
    program.script({"text": "I look.", "calls": [WRITE]}, {"text": "and then", "finish": finish})
    program.killed_at("P8", *program.run("--session", "s1"))
    steps = read_record(program.store).of_session("s1", "model.step_completed.v1")
    assert [step["finish_reason"] for step in steps] == ["tool_calls", finish]
    notes = {note["code"]: note["detail"] for note in program("plan", "s1", "--json").document["notes"]}
    assert notes["last_step_cut_short"]["finish_reason"] == finish
    assert f"finish_reason: {finish}" in program("plan", "s1").out


def test_r3_111_a_step_that_never_completed_is_asked_for_again_with_the_same_input(program: Program) -> None:
    """The request is sent, the answer has begun; X before it is complete."""
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "A long answer.", "delay_seconds": 60})
    first = program.start(*program.run("--session", "s1"))
    try:
        wait_for("the model is not asked", lambda: program.requests == 2)
    finally:
        first.kill()
        first.communicate()
    assert len(read_record(program.store).of_session("s1", "model.step_completed.v1")) == 1
    program.script({"text": "I pay.", "calls": [PAY]}, DONE)
    assert program(*resume(program)).out == "All done.\n"
    asked = [json.loads(line) for line in (program.folder / "requests.log").read_text().splitlines()]
    inputs = [(one["calls"], one["results"], one["model_steps"]) for one in asked]
    assert inputs[1] == inputs[2]
    assert program.effects == ["paid"]


def test_r3_111_what_the_model_was_shown_first_and_what_it_is_shown_again_are_equal() -> None:
    world, act = SharedWorld(), Counted()
    first = PlannedModel([calls(("act", {"n": 1})), BreaksOff("half", INCOMPLETE)])
    ResumingProcess(world).runs("go", first, [act.function])
    again = PlannedModel([says("done")])
    ResumingProcess(world).continues(again, [act.function])
    assert again.asked[0].request.history == first.asked[1].request.history
    assert (again.asked[0].request.system_prompt, again.asked[0].request.tools) == (
        first.asked[1].request.system_prompt,
        first.asked[1].request.tools,
    )


def test_r3_158_a_stream_that_just_ends_ends_its_run_in_ledger_and_list_alike() -> None:
    """The stream ends without a finish event after text."""
    process = ResumingProcess()
    result = process.runs("go", [BreaksOff("text", INCOMPLETE)])
    (end,) = process.of(result.run_id, RunEnded)
    assert (end.status, end.failure_class) == (RunStatus.FAILED, FailureClass.PROVIDER_STREAM_INCOMPLETE)
    row = process.world.store.views.session(SESSION)
    assert row is not None
    assert (row.head_status, row.head_failure_class) == (end.status, end.failure_class)
    check_sound(process, result.run_id)


def test_r3_158_the_program_says_the_same_of_it_each_time_it_is_opened(program: Program) -> None:
    program.script({"text": "text"}, drop_after=1)
    ran = program(*program.run("--session", "s1"), "--json")
    assert (ran.code, ran.document["failure_class"]) == (1, "provider_stream_incomplete")
    for _ in range(3):
        (listed,) = program("list", "--json").document["sessions"]
        assert (listed["state"], listed["failure_class"]) == ("failed", "provider_stream_incomplete")
        assert program("show", "s1", "--json").document["run"]["status"] == "failed"
    assert read_record(program.store).ends("s1") == [["failed"]]
    assert codes_in(program("plan", "s1", "--json")) == []
