"""Calls that run in processes of their own: started after T1, ended and awaited when their time is up. SPEC 8, 15."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.supervisor import MemorySupervisor, Run
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.memory.tool_catalog import MemoryCatalog, MemoryTool
from safepoint.application.live_runs import LiveRun
from safepoint.application.run_turn import TurnResult
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect, Life, RecoveryMode, ToolDispatched
from safepoint.domain.identifiers import OperationId
from safepoint.domain.reasons import FailureClass, ResponseCode
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.tool_results import RESULT_BYTES_MAX
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.supervised import Command, Overness

from .supervised_tools import runs
from .wiring import SESSION, Process, World, beside, check_sound, go, until


def one_call(tool: MemoryTool) -> PlannedModel:
    return PlannedModel([calls((tool.name, {})), says("done")])


def turn(process: Process, tool: MemoryTool, model: PlannedModel | None = None) -> TurnResult:
    return go(lambda: process.turn("go", model or one_call(tool), MemoryCatalog([tool])))


def builds(run: Run) -> int:
    run.stdout += b"built"
    return 0


def until_asked_to_end(run: Run) -> None:
    run.stdout += b"half of it"
    run.asked_to_end.wait()


def test_the_lock_of_an_operation_is_held_before_t1_and_forgotten_after_t2() -> None:
    held: list[Overness] = []

    def at(point: str) -> None:
        if point == Failpoint.T1_COMMITTED:
            (dispatch,) = process.dispatches(process.head())
            held.append(process.supervisor.probe_over(dispatch.operation_id))

    process = Process(programs={"build": builds}, at_failpoint=at)
    result = turn(process, runs("build"))
    (dispatch,) = process.dispatches(result.run_id)
    assert held == [Overness.RUNNING]
    assert dispatch.life is Life.SUPERVISED
    assert process.supervisor.status(dispatch.operation_id) is None
    assert process.response(result.run_id, "build").result == {"exit_code": 0, "stdout": "built"}
    check_sound(process, result.run_id)


def test_a_call_that_cannot_be_supervised_is_refused_before_t1() -> None:
    process = Process(programs={"build": builds})
    process.supervisor.refuses = "no subreaper here"
    result = turn(process, runs("build"))
    response = process.response(result.run_id, "build")
    assert (response.code, response.effect) == (ResponseCode.REFUSED_WITHOUT_EFFECT, Effect.NONE)
    assert "no subreaper here" in str(response.result)
    assert process.dispatches(result.run_id) == []
    check_sound(process, result.run_id)


def _no_work(*_: object) -> Command:
    raise LookupError("no such script")


@pytest.mark.parametrize("tool", [runs("missing"), runs("build", work=_no_work)], ids=["not found", "no command"])
def test_a_program_that_could_not_be_started_had_no_effect(tool: MemoryTool) -> None:
    process = Process(programs={"build": builds})
    result = turn(process, tool)
    response = process.response(result.run_id, tool.name)
    assert (response.code, response.effect) == (ResponseCode.REFUSED_WITHOUT_EFFECT, Effect.NONE)
    assert len(process.dispatches(result.run_id)) == 1
    assert result.outcome.status is RunStatus.COMPLETED
    check_sound(process, result.run_id)


def test_supervised_work_that_runs_too_long_is_ended_and_awaited_and_the_run_goes_on() -> None:
    process = Process(programs={"build": until_asked_to_end})
    result = turn(process, runs("build", timeout_seconds=0.02))
    response = process.response(result.run_id, "build")
    (dispatch,) = process.dispatches(result.run_id)
    assert (response.code, response.effect) == (ResponseCode.TOOL_TIMED_OUT, Effect.UNKNOWN)
    assert isinstance(response.result, dict)
    assert response.result["until_then"] == {"exit_code": None, "stdout": "half of it"}
    assert result.outcome.status is RunStatus.COMPLETED
    assert process.not_over(result.run_id) == ()
    assert process.supervisor.status(dispatch.operation_id) is None
    check_sound(process, result.run_id)


def test_the_last_words_of_ended_work_stay_within_the_bound_of_a_result() -> None:
    def talks(run: Run) -> None:
        run.stdout += b"x" * RESULT_BYTES_MAX
        run.asked_to_end.wait()

    process = Process(programs={"build": talks})
    result = turn(process, runs("build", timeout_seconds=0.02))
    response = process.response(result.run_id, "build")
    assert response.effect is Effect.UNKNOWN
    assert max(len(row) for row in process.stored_bytes(result.run_id)) < RESULT_BYTES_MAX + 5_000
    assert response.original_length is not None
    check_sound(process, result.run_id)


def test_reading_how_work_ended_may_fail_and_is_then_an_unknown_effect() -> None:
    def settle(*_: object) -> Any:
        raise ValueError("odd output")

    process = Process(programs={"build": builds})
    result = turn(process, runs("build", settle=settle))
    response = process.response(result.run_id, "build")
    assert (response.code, response.effect) == (ResponseCode.TOOL_RAISED, Effect.UNKNOWN)
    assert result.outcome.status is RunStatus.COMPLETED
    check_sound(process, result.run_id)


def test_work_whose_supervisor_died_is_left_indeterminate_and_ends_the_run() -> None:
    process = Process(programs={"build": until_asked_to_end})

    async def work() -> TurnResult:
        async def losing() -> None:
            await until(lambda: process.live.of(SESSION) and process.dispatches(process.head()))
            (dispatch,) = process.dispatches(process.head())
            await until(lambda: process.supervisor.status(dispatch.operation_id) is not None)
            process.supervisor.lose_supervisor(dispatch.operation_id)

        tool = runs("build")
        return await beside(losing, process.turn("go", one_call(tool), MemoryCatalog([tool])))

    result = go(work)
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    (verdict,) = process.verdicts(result.run_id)
    assert verdict.status is VerdictStatus.INDETERMINATE
    assert process.not_over(result.run_id) == (verdict.operation_id,), "could not look is not over"
    assert not process.live.of(SESSION), "its lock tells, and nothing of it is in this process"
    check_sound(process, result.run_id)
    (running,) = process.world.supervisor._operations.values()
    assert running.run is not None
    running.run.asked_to_end.set()


def test_supervised_work_is_given_the_bound_after_a_stop_and_then_ended() -> None:
    lives: list[LiveRun] = []
    process = Process(programs={"build": until_asked_to_end}, cancel_bound_seconds=0.05)

    async def work() -> TurnResult:
        async def stopping() -> None:
            await until(lambda: process.supervisor.probe_over(operation()) is Overness.RUNNING)
            await until(lambda: process.supervisor.status(operation()) is not None)
            await lives[0].cancel("ada")

        def operation() -> OperationId:
            dispatches = process.dispatches(process.head()) if lives else []
            return dispatches[0].operation_id if dispatches else OperationId("none")

        tool = runs("build")
        return await beside(stopping, process.turn("go", one_call(tool), MemoryCatalog([tool]), started=lives.append))

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    response = process.response(result.run_id, "build")
    assert response.effect is Effect.UNKNOWN
    assert "stopped by ada" in str(response.result)
    assert process.not_over(result.run_id) == ()
    check_sound(process, result.run_id)


def test_supervised_work_that_ends_within_the_bound_after_a_stop_gets_its_true_outcome() -> None:
    lives: list[LiveRun] = []
    go_on = threading.Event()

    def builds_when_told(run: Run) -> int:
        go_on.wait()
        return builds(run)

    process = Process(programs={"build": builds_when_told})

    async def work() -> TurnResult:
        async def stopping() -> None:
            await until(lambda: lives and process.dispatches(process.head()))
            await lives[0].cancel("ada")
            go_on.set()

        tool = runs("build")
        return await beside(stopping, process.turn("go", one_call(tool), MemoryCatalog([tool]), started=lives.append))

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    response = process.response(result.run_id, "build")
    started = response.effect is Effect.DONE
    not_started = response.code == ResponseCode.NOT_EXECUTED_INTERRUPTED and response.effect is Effect.NONE
    assert started or not_started, "stopped between T1 and the start, or afterwards: never in between"
    check_sound(process, result.run_id)


def test_a_reader_in_a_process_of_its_own_has_no_effect_even_when_it_is_ended() -> None:
    process = Process(programs={"grep": until_asked_to_end})
    result = turn(process, runs("grep", mode=RecoveryMode.REPLAY_SAFE, timeout_seconds=0.02))
    assert process.response(result.run_id, "grep").effect is Effect.NONE
    check_sound(process, result.run_id)


def test_trouble_with_a_lock_file_changes_no_outcome() -> None:
    class ReadOnly(MemorySupervisor):
        def forget(self, operation_id: OperationId) -> bool:
            raise OSError("read-only file system")

    process = Process(supervisor=ReadOnly({"build": builds}))
    result = turn(process, runs("build"))
    assert process.response(result.run_id, "build").effect is Effect.DONE
    assert result.outcome.status is RunStatus.COMPLETED


def test_a_supervised_t1_that_failed_lets_go_of_the_lock() -> None:
    world = World()
    process = Process(world, programs={"build": builds})
    process.events_store.fail_at(ToolDispatched.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        turn(process, runs("build"))
    (operation,) = world.supervisor._operations.values()
    assert not operation.supervised
    assert not operation.started
