"""Repair brings what a dead owner left open to a clear end, once, and settles nothing. SPEC section 11."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.application.ownership import Owned
from safepoint.application.repair_session import Repaired, RepairKind, RepairSession
from safepoint.application.spines import Spines
from safepoint.domain.commands import AbandonRun, EndRun
from safepoint.domain.errors import StoreFull, StoreNotAdopted, StoreUnavailable, WriteRefused
from safepoint.domain.events.event import Event, RunEvent
from safepoint.domain.events.run import ContinuationStarted, RunEnded, RunStatus, StartKind
from safepoint.domain.events.session import RunAbandoned, RunKind
from safepoint.domain.reasons import ParkReason
from safepoint.domain.recovery.event_facts import event_facts
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.ports.event_store import Commit, OwnerGuard
from safepoint.ports.lifecycle_sink import LifecycleKind
from safepoint.ports.store_keeping import Trust

from ..domain.facts import Facts, prefix, sealed
from ..domain.test_assembling import are_one
from .ledger_world import World
from .test_ledger import damaged


class Successor:
    """Whoever takes a session over from a dead owner and repairs it."""

    def __init__(self, world: World, session: str = "s") -> None:
        facts = world.facts("x", session=session, incarnation="i2")
        self.owned = Owned(facts.session_id, facts.incarnation_id, facts.epoch)
        self.sink = CollectingSink()
        self.repair = RepairSession(world.another_ledger(), Spines(SystemClock(), Uuid7Ids()), self.sink)

    def __call__(self, **how: Any) -> Repaired:
        return self.repair(self.owned, **how)


def ended(world: World, run: str = "r") -> RunEnded:
    last = [one.event for one in world.stream(f"run:{run}") if isinstance(one.event, RunEnded)]
    assert len(last) == 1
    return last[0]


def test_undispatched_calls_are_closed_with_the_terminal_event_and_the_rest_is_left_as_it_is(world: World) -> None:
    r = world.opened("r", "a", "b", "c", "d")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    world.ledger.execute(r.prepare(r.dispatch("b")))
    world.ledger.execute(r.commit(r.outcome("b")))
    world.ledger.execute(r.append(r.requested("c")))
    before = world.topics()
    result = Successor(world)()
    assert (result.kind, result.run_id, result.status) == (RepairKind.RUN_CLOSED, "r", RunStatus.FAILED)
    assert world.topics() == [*before, "tool.responded.v1", "tool.responded.v1", "run.ended.v1"]
    assert (ended(world).failure_class, ended(world).recovered, ended(world).incarnation_id) == (
        "app_restarted",
        True,
        "i2",
    )
    scanner = Scanner()
    for one in world.stream("run:r"):
        assert isinstance(one.event, RunEvent)
        scanner.feed(event_facts(one.event))
    assert {v.call_id: v.status.value for v in resolve(scanner, foreign=False).verdicts} == {
        "a": "indeterminate",
        "b": "completed",
        "c": "completed",
        "d": "completed",
    }
    assert [p.requested.request_id for p in world.another_ledger().run(r.run_id).open_permissions] == ["ask-c"]
    assert world.topics("session:s")[-1] == "session.effect_watched.v1"
    assert world.consistent()


def test_it_is_one_commit(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    world.fail_commit(stored=False)
    with pytest.raises(StoreUnavailable):
        Successor(world)()
    assert world.topics()[-1] == "tool.dispatched.v1"
    assert Successor(world)().kind is RepairKind.RUN_CLOSED


def test_repairing_twice_is_repairing_once(world: World) -> None:
    world.opened("r", "a")
    successor = Successor(world)
    successor()
    before = world.topics()
    assert [successor().kind for _ in range(3)] == [RepairKind.NOTHING_OPEN] * 3
    assert world.topics() == before
    assert [event.kind for event in successor.sink.events] == [LifecycleKind.REPAIR_COMPLETED]


@pytest.mark.parametrize("asked", ["before the crash", "with the repair", "both"])
def test_a_run_that_a_person_stopped_ends_cancelled_with_its_questions_closed(world: World, asked: str) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.append(r.requested("a")))
    if asked != "with the repair":
        world.ledger.execute(r.append(r.cancelled("Ada")))
    result = Successor(world)(cancelled_by=None if asked == "before the crash" else "Bob")
    assert result.status is RunStatus.CANCELLED
    assert (ended(world).status, ended(world).failure_class) == (RunStatus.CANCELLED, None)
    assert world.topics()[-3:] == ["tool.responded.v1", "permission.closed.v1", "run.ended.v1"]
    closing = world.stream("run:r")[-3].event.model_dump()
    by = "Bob" if asked == "with the repair" else "Ada"
    assert closing["result"] == f"Not executed: {by} stopped the run before dispatch."


@pytest.mark.parametrize("cancelled_by", [None, "Ada"])
def test_the_end_that_repair_writes_is_what_validating_would_make_of_it(world: World, cancelled_by: str | None) -> None:
    r = world.opened("r", "a")
    successor = Successor(world)
    command = successor.repair.decide(successor.owned, cancelled_by)
    assert isinstance(command, EndRun)
    assert command.run_id == r.run_id
    are_one(command.ended, RunEnded.model_validate(command.ended.model_dump()))


@pytest.mark.parametrize("status", list(RunStatus))
def test_a_run_that_has_ended_is_not_touched(world: World, status: RunStatus) -> None:
    r = world.opened()
    world.ledger.execute(r.end(status))
    result = Successor(world)()
    assert (result.kind, result.run_id, result.status) == (RepairKind.NOTHING_OPEN, "r", status)


def test_a_session_without_a_run_has_nothing_open(world: World) -> None:
    assert Successor(world)() == Repaired(Facts().session_id, RepairKind.NOTHING_OPEN)


# ---- unstarted claims ------------------------------------------------------------------------------------------------


def claimed(world: World) -> Facts:
    r, target = world.opened(), Facts("r2")
    world.ledger.execute(r.end())
    world.ledger.execute(r.claim(target, [prefix(r, [one.event for one in world.stream("run:r")])]))
    return world.own(target)


@pytest.mark.parametrize(("by", "status"), [(None, RunStatus.FAILED), ("Ada", RunStatus.CANCELLED)])
def test_an_unstarted_claim_becomes_a_run_that_ended_before_any_provider_call(
    world: World, by: str | None, status: RunStatus
) -> None:
    claimed(world)
    successor = Successor(world)
    result = successor(cancelled_by=by)
    assert (result.kind, result.run_id, result.status) == (RepairKind.CLAIM_REPAIRED, "r2", status)
    started, end = (one.event for one in world.stream("run:r2"))
    assert isinstance(started, ContinuationStarted)
    assert started.kind is StartKind.CLAIM_REPAIR
    assert isinstance(end, RunEnded)
    failure = "continuation_abandoned_before_provider_dispatch" if by is None else None
    assert (end.status, end.failure_class, end.recovered) == (status, failure, True)
    assert [event.kind for event in successor.sink.events] == [LifecycleKind.CLAIM_REPAIRED]
    assert successor().kind is RepairKind.NOTHING_OPEN
    assert len(world.stream("run:r2")) == 2


def test_the_inbox_waits_for_a_run_that_can_use_it(world: World) -> None:
    r, target = world.opened("r", "a"), Facts("r2")
    world.ledger.execute(r.append(r.requested("a")))
    world.ledger.execute(r.end())
    late = r.late(r.decided("ask-a", grant_id="g1"), grant=r.grant(r.requested("a")), notice=r.notice())
    world.ledger.execute(late)
    world.ledger.execute(r.claim(target, [prefix(r, [one.event for one in world.stream("run:r")])]))
    Successor(world)()
    session = world.another_ledger().session(r.session_id)
    assert (len(session.notices), len(session.grants)) == (1, 1)


def test_a_started_continuation_is_an_ordinary_run(world: World) -> None:
    target = claimed(world)
    claim = world.stream("run:r")[-1].event
    world.ledger.execute(target.start(claim))  # type: ignore[arg-type]
    assert Successor(world)().kind is RepairKind.RUN_CLOSED
    assert ended(world, "r2").failure_class == "app_restarted"


# ---- what stands in the way ------------------------------------------------------------------------------------------


def test_a_run_that_is_damaged_is_left_untouched_and_its_session_quarantined(world: World) -> None:
    damaged(world, "a")
    before = world.topics()
    successor = Successor(world)
    result = successor()
    assert (result.kind, result.code) == (RepairKind.QUARANTINED, ParkReason.RUNTIME_LEDGER_UNREADABLE)
    assert result.detail
    assert world.topics() == before
    assert successor.sink.events == []


@pytest.mark.parametrize("before", ["nothing", "a run that was not claimed", "a claim of another run"])
def test_a_run_that_was_admitted_and_that_no_claim_names_is_left_to_a_person(world: World, before: str) -> None:
    """Written by somebody who went past the ledger, which admits and opens in one commit."""
    r = world.facts()
    session: list[Event] = [r.session_opened()]
    if before != "nothing":
        run: list[Event] = [r.opened(), r.user(), r.ended()]
        session += [r.admitted()]
        if before == "a claim of another run":
            run += [r.claim(Facts("r8"), [prefix(r, run)]).claimed]
        world.events.append([Commit(OwnerGuard(*r.guard), tuple(sealed(run)))])
    session += [Facts("r9").admitted(RunKind.CONTINUATION, claim_id="claim-r9")]
    world.events.append([Commit(OwnerGuard(*r.guard), tuple(sealed(session)))])
    result = Successor(world)()
    assert (result.kind, result.code) == (RepairKind.QUARANTINED, ParkReason.SOURCE_RUN_UNREADABLE)
    assert "r9" in result.detail
    assert world.topics("run:r9") == []


@pytest.mark.parametrize("stream", ["session:s", "run:r", "the source of a claim"])
def test_a_chain_that_does_not_verify_is_left_untouched(memory: World, stream: str) -> None:
    if stream == "the source of a claim":
        claimed(memory)
        stream = "run:r"
    else:
        memory.opened("r", "a")
    assert isinstance(memory.store, MemoryStore)
    tables = memory.store._tables
    row = tables.streams[stream][0]
    tables.records[row] = tables.records[row]._replace(state=tables.records[row].state.replace(b"2026", b"2027"))
    result = Successor(memory)()
    assert (result.kind, result.code) == (RepairKind.QUARANTINED, ParkReason.RUNTIME_LEDGER_UNREADABLE)


def test_a_run_that_a_person_gave_up_is_not_open(world: World) -> None:
    r = damaged(world, "a")
    fact = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=2)
    world.ledger.execute(AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact))
    assert Successor(world)().kind is RepairKind.NOTHING_OPEN


FAILURES: dict[str, tuple[Callable[[MemoryStore], None], type[Exception]]] = {
    "could not look": (lambda store: store.fail_next(Failure.UNREADABLE), StoreUnavailable),
    "no room": (lambda store: store.fail_next(Failure.FULL), StoreFull),
    "not adopted": (lambda store: store.distrust(Trust.COPIED), StoreNotAdopted),
    "behind its anchor": (lambda store: store.distrust(Trust.BEHIND_ANCHOR), StoreNotAdopted),
}


@pytest.mark.parametrize(("fail", "error"), FAILURES.values(), ids=FAILURES)
def test_what_concerns_the_whole_store_quarantines_no_session(
    memory: World, fail: Callable[[MemoryStore], None], error: type[Exception]
) -> None:
    memory.opened("r", "a")
    assert isinstance(memory.store, MemoryStore)
    successor = Successor(memory)
    fail(memory.store)
    with pytest.raises(error):
        successor()


def test_in_a_foreign_run_no_call_is_closed(memory: World) -> None:
    """Adopted after its tail was lost: a dispatch may have been lost with it. SPEC section 6."""
    memory.opened("r", "a")
    assert isinstance(memory.store, MemoryStore)
    memory.store.adopt(by="Ada", note="restored", at="2026-11-29T12:00:00.000000Z")
    assert Successor(memory)().kind is RepairKind.RUN_CLOSED
    assert memory.topics()[-2:] == ["model.step_completed.v1", "run.ended.v1"]


def test_whoever_does_not_own_the_session_repairs_nothing(world: World) -> None:
    world.opened("r", "a")
    successor = Successor(world)
    world.facts("x", incarnation="i3")
    with pytest.raises(WriteRefused) as refused:
        successor()
    assert refused.value.code == "owner_fenced"


def test_a_run_that_ended_by_itself_meanwhile_is_told_as_it_is(world: World) -> None:
    r = world.opened("r", "a")
    repair = RepairSession(world.ledger, Spines(SystemClock(), Uuid7Ids()), CollectingSink())
    world.ledger.run(r.run_id)
    world.ledger.execute(r.refuse(r.refusal("a")))
    world.events.before_append(lambda: world.another_ledger().execute(r.end(RunStatus.COMPLETED)))
    result = repair(Owned(*r.guard))
    assert (result.kind, result.status) == (RepairKind.NOTHING_OPEN, RunStatus.COMPLETED)
