"""Operators are told of each thing that happens once, with identities, codes and error class. SPEC section 18.

What is told is compared whole: nothing more, nothing twice, and in order.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.live_runs import LiveRun
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.settlement import SaidBy
from safepoint.domain.errors import StoreError, StoreFull
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import Statement, ToolResponded
from safepoint.domain.identifiers import OperationId, RunId
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleKind
from safepoint.ports.provider_failures import ProviderFailed
from safepoint.ports.store_keeping import Trust

from .counted_tools import Counted
from .resuming import Resuming, aside, claims, failed, killed
from .wiring import SESSION, Process, World, go

K = LifecycleKind
ACT = calls(("act", {"n": 1}))


def told(process: Process, since: int = 0) -> list[tuple[Any, ...]]:
    """Everything that was told: kind, run, codes, and what else is known."""
    assert all(event.session_id == SESSION for event in process.sink.events)
    return [(event.kind, event.run_id, event.codes, *_rest(event)) for event in process.sink.events[since:]]


def _rest(event: LifecycleEvent) -> tuple[Any, ...]:
    return tuple(part for part in (event.operation_id, event.claim_id, event.error_class) if part is not None)


def unsettled(world: World, recovery: str = "outcome_unknown") -> tuple[Counted, RunId, OperationId]:
    """A run that died after its effect, before the outcome was committed; it was repaired already."""
    act, dead = Counted(recovery=recovery), Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(partial(dead.turn, "go", [ACT], [act.function]))
    dead.die()
    run_id = dead.head()
    (dispatch,) = dead.dispatches(run_id)
    return act, run_id, dispatch.operation_id


def test_a_turn_is_started_and_completed() -> None:
    process = Process()
    run_id = go(partial(process.turn, "go", [says("done")])).run_id
    assert told(process) == [(K.EXECUTION_STARTED, run_id, ()), (K.EXECUTION_COMPLETED, run_id, ())]


def test_a_turn_that_fails_is_told_with_its_failure_class() -> None:
    process = Process()
    run_id = go(partial(process.turn, "go", [ProviderFailed("the key sk-1 is wrong")])).run_id
    assert told(process) == [
        (K.EXECUTION_STARTED, run_id, ()),
        (K.EXECUTION_FAILED, run_id, ("provider_failed",)),
    ]


def test_a_turn_that_a_person_stopped_is_completed_as_cancelled() -> None:
    process = Process()

    def stop(live: LiveRun) -> None:
        live.stopping.ask("ada")
        live.stopping.request()

    run_id = go(partial(process.turn, "go", [says("done")], started=stop)).run_id
    assert told(process) == [(K.EXECUTION_STARTED, run_id, ()), (K.EXECUTION_COMPLETED, run_id, ("cancelled",))]


def test_a_turn_that_cannot_be_recorded_any_further_is_told_by_the_class_of_its_error() -> None:
    process = Process()
    process.events_store.fail_at(RunEnded.topic, Failure.FULL)
    with pytest.raises(StoreError):
        go(partial(process.turn, "go", [says("done")]))
    run_id = process.head()
    assert told(process) == [
        (K.EXECUTION_STARTED, run_id, ()),
        (K.EXECUTION_FAILED, run_id, (), "StoreFull"),
    ]


def test_a_continuation_is_approved_started_and_completed_under_one_claim() -> None:
    world, act = World(), Counted()
    source = failed(world, [act.function])
    process = Resuming(world)
    done = process.continues(process.agent([says("done")], [act.function]))
    (claim,) = claims(process)
    assert told(process) == [
        (K.PLAN_APPROVED, source, (), claim.claim_id),
        (K.EXECUTION_STARTED, done.run_id, (), claim.claim_id),
        (K.EXECUTION_COMPLETED, done.run_id, (), claim.claim_id),
    ]


def test_a_repair_is_told_before_the_plan_that_it_was_made_for() -> None:
    world, act = World(), Counted()
    source = killed(world, [act.function])
    process = Resuming(world)
    done = process.continues(process.agent([says("done")], [act.function]))
    claim_id = done.claim_id
    assert told(process) == [
        (K.REPAIR_COMPLETED, source, ("app_restarted",)),
        (K.PLAN_APPROVED, source, (), claim_id),
        (K.EXECUTION_STARTED, done.run_id, (), claim_id),
        (K.EXECUTION_COMPLETED, done.run_id, (), claim_id),
    ]


def test_a_plan_that_parks_is_told_with_every_reason() -> None:
    world = World()
    act, source, _ = unsettled(world)
    process = Resuming(world)
    parked = process.parks(process.agent([], [act.function]), PlanRequest(run_id=source))
    assert told(process) == [
        (K.REPAIR_COMPLETED, source, ("app_restarted",)),
        (K.PLAN_PARKED, source, ("dangling_tool_state",)),
    ]
    assert parked.codes == ("dangling_tool_state",)
    process.parks(process.agent([]))
    assert told(process, since=2) == [(K.PLAN_PARKED, None, ("dangling_tool_state", "tool_catalog_mismatch"))]


def test_a_session_that_somebody_owns_is_parked_and_told() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    owner = Process(world)
    owner.ownership.own(SESSION)
    process = Resuming(world)
    process.parks(process.agent([], [act.function]))
    assert told(process) == [(K.PLAN_PARKED, None, ("session_busy",))]


def test_a_world_that_changed_under_a_plan_is_told_by_what_changed() -> None:
    world, act = World(), Counted()
    source = failed(world, [act.function])
    process = Resuming(world, between_looks=lambda: aside(lambda: world.store.distrust(Trust.BEHIND_ANCHOR)))
    parked = process.parks(process.agent([], [act.function]))
    approved, (kind, run_id, codes) = told(process)
    assert approved[:2] == (K.PLAN_APPROVED, source)
    assert (kind, run_id) == (K.PLAN_PARKED, None)
    assert codes == ("ledger_behind_anchor", "foreign_run_not_adopted", "source_ledger_identity_changed")
    assert (parked.codes, parked.changed) == (codes[:2], codes[2:])


def test_a_repaired_claim_is_told_with_its_failure_class() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    dying = Resuming(world)
    dying.is_killed(dying.agent([], [act.function]), at=Failpoint.CLAIM_COMMITTED)
    process = Resuming(world)
    target = process.head()
    done = process.continues(process.agent([says("done")], [act.function]))
    abandoned = ("continuation_abandoned_before_provider_dispatch",)
    assert [one[0] for one in told(process)] == [
        K.CLAIM_REPAIRED,
        K.PLAN_APPROVED,
        K.EXECUTION_STARTED,
        K.EXECUTION_COMPLETED,
    ]
    assert told(process)[0] == (K.CLAIM_REPAIRED, target, abandoned)
    assert done.source_run_id == target


def test_an_attested_operation_is_told_with_the_statement_and_never_with_the_note() -> None:
    world = World()
    _, run_id, operation_id = unsettled(world)
    process = Process(world)
    process.settle(SaidBy(operation_id, Statement.COMPLETED, "ada", "secret-note", "secret-result"))
    assert told(process) == [
        (K.REPAIR_COMPLETED, run_id, ("app_restarted",)),
        (K.OPERATION_ATTESTED, run_id, ("completed",), operation_id),
    ]
    assert "secret" not in repr(process.sink.events)
    assert "ada" not in repr(process.sink.events)


def test_a_reconciled_operation_is_told_with_what_was_observed() -> None:
    world = World()
    act, run_id, operation_id = unsettled(world, "replay_safe")
    process = Process(world)
    go(partial(process.reconcile, [act.function]))
    assert told(process) == [
        (K.REPAIR_COMPLETED, run_id, ("app_restarted",)),
        (K.OPERATION_RECONCILED, run_id, ("effect_free",), operation_id),
    ]


def test_an_operation_that_reconciling_parks_is_told_with_the_reason() -> None:
    world = World()
    act, run_id, operation_id = unsettled(world)
    process = Process(world)
    go(partial(process.reconcile, [act.function]))
    *_, last = told(process)
    assert last[:2] == (K.OPERATION_RECONCILED, run_id)
    assert last[2][-1] == "contract_forbids_recovery"
    assert last[3] == operation_id


def test_looking_tells_nobody() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    process.plans(process.agent([], [act.function]))
    assert told(process) == []


def test_every_kind_is_told_by_one_of_these() -> None:
    source = Path(__file__).read_text()
    assert [kind for kind in LifecycleKind if f"K.{kind.name}" not in source] == []
