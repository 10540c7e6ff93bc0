"""T1 commits before the implementation starts, T2 before the model sees the result. SPEC R6, R7 and section 7."""

from __future__ import annotations

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.memory.tool_catalog import MemoryCatalog, MemoryTool
from safepoint.domain.errors import StoreError, StoreFull, StoreUnavailable, WriteRefused
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import Effect, ToolDispatched, ToolResponded
from safepoint.domain.reasons import FailureClass, WriteRefusal
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.model_step import CallBlock
from safepoint.ports.tool_catalog import Arguments, SyncCall, ToolContext

from .counted_tools import Counted
from .wiring import SESSION, Process, check_sound, go

T1, T2 = ToolDispatched.topic, ToolResponded.topic


def plan() -> PlannedModel:
    return PlannedModel([calls(("act", {"n": 1})), says("done")])


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (Failure.FULL, StoreFull),
        (Failure.UNAVAILABLE, StoreUnavailable),
        (Failure.COMMIT_LOST, StoreUnavailable),
        (Failure.COMMIT_STORED, StoreUnavailable),
        (Failure.ANCHOR_NOT_RAISED, StoreUnavailable),
        (Failure.DAMAGED, StoreError),
    ],
)
def test_an_implementation_whose_t1_failed_is_called_zero_times(failure: Failure, raised: type[StoreError]) -> None:
    process, act, model = Process(), Counted(), plan()
    process.events_store.fail_at(T1, failure)
    with pytest.raises(raised):
        go(lambda: process.turn("go", model, [act.function]))
    assert act.calls == []
    assert len(model.asked) == 1
    assert not process.live.of(SESSION)


def test_an_implementation_whose_t1_was_fenced_is_called_zero_times() -> None:
    process, act = Process(), Counted()
    process.events_store.fail_at(T1, None)
    with pytest.raises(WriteRefused) as refused:
        go(lambda: process.turn("go", plan(), [act.function]))
    assert refused.value.code is WriteRefusal.OWNER_FENCED
    assert act.calls == []
    assert process.dispatches(process.head()) == []


@pytest.mark.parametrize("failure", [Failure.COMMIT_STORED, Failure.ANCHOR_NOT_RAISED, Failure.COMMIT_LOST])
def test_a_t1_that_may_have_committed_is_closed_by_a_t2_that_says_that_nothing_happened(failure: Failure) -> None:
    process, act = Process(), Counted()
    process.events_store.fail_at(T1, failure)
    with pytest.raises(StoreUnavailable):
        go(lambda: process.turn("go", plan(), [act.function]))
    (response,) = process.responses(process.head())
    (dispatch,) = process.dispatches(process.head())
    assert (response.operation_id, response.effect) == (dispatch.operation_id, Effect.NONE)
    assert [verdict.status for verdict in process.verdicts(process.head())] == [VerdictStatus.COMPLETED]


def test_a_t1_of_which_nothing_can_be_learned_is_left_to_recovery() -> None:
    process, act = Process(), Counted()
    process.events_store.fail_at(T1, Failure.COMMIT_STORED)
    process.events_store.fail_at(T2, Failure.UNAVAILABLE)
    with pytest.raises(StoreUnavailable):
        go(lambda: process.turn("go", plan(), [act.function]))
    assert act.calls == []
    assert [verdict.status for verdict in process.verdicts(process.head())] == [VerdictStatus.INDETERMINATE]


def test_a_run_that_could_not_be_recorded_stays_owned_and_is_repaired_by_the_next_turn() -> None:
    process, act = Process(), Counted()
    process.events_store.fail_at(T1, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.turn("go", plan(), [act.function]))
    first = process.head()
    assert process.owner() is not None
    assert "run.ended" not in process.topics(first)
    result = go(lambda: process.turn("again", PlannedModel([says("back")])))
    assert result.repaired.run_id == first
    (ended,) = process.of(first, RunEnded)
    assert ended.failure_class == FailureClass.APP_RESTARTED
    check_sound(process, first)
    check_sound(process, result.run_id)
    assert process.owner() is None


def test_a_task_that_is_cancelled_while_t1_commits_closes_it_unexecuted() -> None:
    act = Counted()
    scopes: list[anyio.CancelScope] = []

    def at(point: str) -> None:
        if point == Failpoint.T1_COMMITTED:
            scopes[0].cancel()

    process = Process(at_failpoint=at)

    async def work() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await process.turn("go", plan(), [act.function])

    go(work)
    (response,) = process.responses(process.head())
    assert act.calls == []
    assert response.effect is Effect.NONE
    assert response.operation_id is not None
    assert not process.live.of(SESSION)


@pytest.mark.parametrize("failure", [Failure.FULL, Failure.UNAVAILABLE, Failure.COMMIT_LOST])
def test_a_result_whose_t2_failed_is_never_seen_by_the_model_and_its_operation_is_indeterminate(
    failure: Failure,
) -> None:
    process, act, model = Process(), Counted(), plan()
    process.events_store.fail_at(T2, failure)
    with pytest.raises(StoreError):
        go(lambda: process.turn("go", model, [act.function]))
    assert act.calls == [1]
    assert len(model.asked) == 1
    assert [verdict.status for verdict in process.verdicts(process.head())] == [VerdictStatus.INDETERMINATE]


def test_a_t2_that_became_durable_although_its_commit_failed_counts_on_reopening() -> None:
    process, act, model = Process(), Counted(), plan()
    process.events_store.fail_at(T2, Failure.COMMIT_STORED)
    with pytest.raises(StoreUnavailable):
        go(lambda: process.turn("go", model, [act.function]))
    assert len(model.asked) == 1
    (verdict,) = process.verdicts(process.head())
    assert (verdict.status, verdict.effect) == (VerdictStatus.COMPLETED, Effect.DONE)


def test_a_failed_t2_stops_further_dispatches_of_the_step() -> None:
    process, act = Process(), Counted()
    model = PlannedModel([calls(("act", {"n": 0}), ("act", {"n": 1}), ("act", {"n": 2}))])
    process.events_store.fail_at(T2, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.turn("go", model, [act.function]))
    assert act.calls == [0]


def test_no_commit_is_under_way_while_a_tool_runs() -> None:
    process = Process()
    commits: list[int] = []

    def look() -> str:
        """Look."""
        commits.append(len(process.events_store.commits))
        process.ledger.forget(SESSION)  # takes the writer's lock, which nobody holds now
        return "ok"

    result = go(lambda: process.turn("go", PlannedModel([calls(("look", {})), says("done")]), [look]))
    t1 = [i for i, commit in enumerate(process.events_store.commits) if any(e.event.topic == T1 for e in commit.events)]
    assert commits == [t1[0] + 1]
    check_sound(process, result.run_id)


def test_what_the_implementation_gets_is_what_was_stored_and_hashed() -> None:
    process = Process()
    got: list[str] = []

    def take(arguments: Arguments, context: ToolContext) -> str:
        got.append(repr(arguments))
        return "ok"

    catalog = MemoryCatalog([MemoryTool(name="take", implementation=SyncCall(take), parameters={"value": dict})])
    model = PlannedModel([calls(CallBlock("c", "take", '{"value": {"b": 1.0, "a": 1E21, "c": -0.0}}')), says("done")])
    result = go(lambda: process.turn("go", model, catalog))
    check_sound(process, result.run_id)
    assert got == ["{'value': {'a': 1e+21, 'b': 1, 'c': 0}}"]
