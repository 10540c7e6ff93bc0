"""Field reports: an answer that was cut off in the middle. SPEC R13, F5."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.model_provider import BreaksOff, calls, says
from safepoint.domain.events.run import RunEnded, RunError, RunStatus
from safepoint.domain.reasons import FailureClass, ResponseCode
from safepoint.ports.model_step import CallBlock, StepFinished
from safepoint.ports.provider_failures import ProviderStreamIncomplete

from ..adapters.cli.program import WRITE, Program
from ..application.counted_tools import Counted
from ..application.wiring import check_sound
from ..crash.harness.record import read_record
from .programs import codes_in
from .resuming import ResumingProcess, SharedWorld

CUT = '{"path":"a","content":"line1'
INCOMPLETE = ProviderStreamIncomplete("the stream ended")


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
