"""What a `reattach` call started is found again by its handle: jobs by their status, child runs by id. SPEC 10, 11."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.memory.tool_catalog import MemoryCatalog
from safepoint.application.reconciliation import Completed, Left, LeftAlone, NowParked
from safepoint.application.resume_run import Continued
from safepoint.domain.child_runs import child_run_evidence
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import Effect, Observation, RecoveryMode, ToolResponded
from safepoint.domain.identifiers import OperationId, RunId, SessionId, run_stream
from safepoint.domain.reasons import RecoveryReason
from safepoint.ports.provider_failures import ProviderFailed
from safepoint.ports.supervised import OperationStatus, Overness, Progress

from .counted_tools import Counted
from .supervised_tools import runs
from .wiring import SESSION, Process, World, check_sound, go

CHILD = SessionId("child")


def left_job(world: World, code: int | None) -> OperationId:
    """A process that died while its supervised job went on to its end."""
    dead = Process(world, programs={"job": lambda run: code})
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    catalog = MemoryCatalog([runs("job", mode=RecoveryMode.REATTACH)])
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([calls(("job", {}))]), catalog))
    dead.die()
    dead.supervisor.die()
    (dispatch,) = dead.dispatches(dead.head())
    return dispatch.operation_id


def became(process: Process) -> Completed | NowParked | LeftAlone:
    (one,) = go(process.reconcile).operations
    return one.became


@pytest.mark.parametrize(("code", "signal"), [(0, None), (1, None), (None, 15)])
def test_a_job_that_ended_after_its_owner_is_found_with_its_exit_status(code: int | None, signal: int | None) -> None:
    world = World()
    operation_id = left_job(world, code)
    process = Process(world)
    settled = became(process)
    assert isinstance(settled, Completed)
    assert (settled.observation, settled.is_error) == (Observation.HANDLE_SETTLED, False)
    (response,) = process.responses(process.head())
    assert isinstance(response.result, dict)
    assert (response.result["exit_code"], response.result["signal"]) == (code, signal)
    assert "not kept" in str(response.result["output"])
    assert response.effect is Effect.DONE
    assert process.supervisor.status(operation_id) is None  # the proof is not needed any more
    check_sound(process, process.head())


def test_a_job_whose_owner_died_before_it_was_started_is_answered_as_never_started() -> None:
    world = World()
    operation_id = left_job(world, 0)
    status = OperationStatus(operation_id, Progress.NEVER_STARTED)
    world.supervisor.operations()[operation_id].status = status
    process = Process(world)
    settled = became(process)
    assert isinstance(settled, Completed)
    assert (settled.is_error, settled.detail) == (True, "it was never started")
    (response,) = process.responses(process.head())
    assert (response.effect, response.is_error) == (Effect.NONE, True)
    assert process.ledger.session(SESSION).watched == {}


def test_a_job_that_still_runs_is_left_alone_and_named() -> None:
    world = World()
    operation_id = left_job(world, 0)
    operation = world.supervisor.operations()[operation_id]
    operation.overness = Overness.RUNNING
    process = Process(world)
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert left.why is Left.MAY_BE_RUNNING
    assert [one.name for one in left.processes] == ["supervisor"]
    operation.overness = Overness.OVER
    assert isinstance(became(process), Completed)


def test_a_job_whose_end_nobody_wrote_down_is_parked() -> None:
    world = World()
    operation_id = left_job(world, 0)
    world.supervisor.operations()[operation_id].status = None
    process = Process(world)
    parked = became(process)
    assert isinstance(parked, NowParked)
    assert parked.reason is RecoveryReason.HANDLE_UNKNOWN
    check_sound(process, process.head())


# Child runs


def waiting_for(world: World, child: RunId) -> None:
    """A run whose call started a child run, and whose process died before it could say what became of that."""
    act = Counted(recovery="reattach", evidence=lambda arguments, workspace: child_run_evidence(child))
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([calls(("act", {"n": 1}))]), [act.function]))
    dead.die()


def child_run(world: World, *steps: Any) -> RunId:
    process = Process(world)
    result = go(lambda: process.turn("help", PlannedModel(list(steps)), session_id=CHILD))
    return result.run_id


def interrupted_child(world: World) -> RunId:
    dead = Process(world)
    dead.events_store.fail_at(RunEnded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("help", PlannedModel([says("half")]), session_id=CHILD))
    dead.die()
    return dead.head(CHILD)


def test_a_child_run_that_ended_is_the_answer_with_its_last_words() -> None:
    world = World()
    child = child_run(world, says("I helped."))
    waiting_for(world, child)
    process = Process(world)
    settled = became(process)
    assert isinstance(settled, Completed)
    assert settled.observation is Observation.HANDLE_SETTLED
    (response,) = process.responses(process.head())
    assert response.result == {"run_id": child, "status": "completed", "failure_class": None, "text": "I helped."}
    assert not response.is_error
    check_sound(process, process.head())


def test_a_child_run_that_failed_is_a_known_result_and_an_error() -> None:
    world = World()
    waiting_for(world, child_run(world, ProviderFailed("down")))
    process = Process(world)
    settled = became(process)
    assert isinstance(settled, Completed)
    assert settled.is_error
    (response,) = process.responses(process.head())
    assert isinstance(response.result, dict)
    assert (response.result["status"], response.result["failure_class"]) == ("failed", "provider_failed")


def test_a_child_run_that_was_interrupted_is_unknown_until_a_person_resumes_it() -> None:
    world = World()
    child = interrupted_child(world)
    waiting_for(world, child)
    process = Process(world)
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert (left.why, left.child) == (Left.HANDLE_RUNNING, None)
    assert "has not ended" in left.detail
    owned = process.ownership.own(CHILD)
    process.repair(owned)
    process.ownership.release(owned)
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert (left.why, left.child) == (Left.CHILD_INTERRUPTED, CHILD)
    assert f"run {child} of session child was interrupted, and can be continued" in left.detail
    done = go(lambda: process.resume([says("all of it")], session_id=CHILD))
    assert isinstance(done, Continued)
    settled = became(process)
    assert isinstance(settled, Completed)
    (response,) = process.responses(process.head())
    assert isinstance(response.result, dict)
    assert (response.result["run_id"], response.result["text"]) == (done.run_id, "all of it")


def test_a_child_run_that_this_store_does_not_have_is_parked() -> None:
    world = World()
    waiting_for(world, RunId("nowhere"))
    process = Process(world)
    parked = became(process)
    assert isinstance(parked, NowParked)
    assert parked.reason is RecoveryReason.HANDLE_UNKNOWN


def test_a_child_run_that_cannot_be_read_settles_nothing() -> None:
    world = World()
    child = child_run(world, says("I helped."))
    waiting_for(world, child)
    process = Process(world)
    records = world.store._tables.records
    at = next(place for place, record in enumerate(records) if record.stream == run_stream(child))
    records[at] = records[at]._replace(state=records[at].state.replace(b'"event_id"', b'"event_ix"'))
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert (left.why, "cannot be read" in left.detail) == (Left.HANDLE_RUNNING, True)


def test_a_call_that_recorded_no_handle_is_parked() -> None:
    world, act = World(), Counted(recovery="reattach")
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([calls(("act", {"n": 1}))]), [act.function]))
    dead.die()
    parked = became(Process(world))
    assert isinstance(parked, NowParked)
    assert parked.reason is RecoveryReason.HANDLE_UNKNOWN
    assert act.calls == [1]
