"""A person gives a damaged run up, and the session goes on without it. SPEC section 11."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.permission.deny import DenyGate
from safepoint.application.give_up_run import GivenUp, GiveUpRun, NothingToGiveUp, SessionDamaged
from safepoint.application.ownership import SessionBusy
from safepoint.application.resume_run import Parked
from safepoint.application.run_turn import SessionQuarantined
from safepoint.application.settlement import Recorded, SaidBy, SettlementRefusal, SettlementRefused
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.run import ContinuationStarted, RunStatus
from safepoint.domain.events.session import RunAbandoned
from safepoint.domain.events.tool import Statement, ToolResponded
from safepoint.domain.identifiers import OperationId
from safepoint.domain.replay.items import UserItem
from safepoint.domain.sentences import SentenceId
from safepoint.ports.provider_failures import ProviderFailed

from .counted_tools import Counted
from .wiring import SESSION, Process, World, go

ACT = calls(("act", {"n": 1}))


def give_up(process: Process, note: str = "the disk failed") -> GivenUp:
    parts = (process.events_store, process.ledger, process.ownership, process.repair, process.spines)
    return GiveUpRun(*parts)(SESSION, by="ada", note=note)


def damage(world: World, topic: str) -> None:
    """Make the newest event of a kind unreadable."""
    records = world.store._tables.records
    at = [place for place, record in enumerate(records) if record.topic == topic][-1]
    records[at] = records[at]._replace(state=records[at].state.replace(b'"event_id"', b'"event_ix"'))


def damaged(world: World, topic: str = "run.ended.v1") -> tuple[Process, OperationId]:
    """A run that died after a dispatch, and of which one event was then damaged on the disk."""
    dead, act = Process(world), Counted()
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    go(lambda: Process(world).turn("before", PlannedModel([says("fine")])))
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([ACT]), [act.function]))
    dead.die()
    (dispatch,) = dead.dispatches(dead.head())
    Process(world).cancel(SESSION, "ada")
    damage(world, topic)
    return dead, dispatch.operation_id


def test_a_damaged_run_stands_in_the_way_until_it_is_given_up() -> None:
    world = World()
    dead, operation_id = damaged(world)
    process, model = Process(world), PlannedModel([says("ok")])
    with pytest.raises(SessionQuarantined):
        go(lambda: process.turn("on", model))
    given_up = give_up(process)
    assert (given_up.run_id, given_up.watched, given_up.before) == (dead.head(), (operation_id,), False)
    assert "run.ended.v1" in given_up.damage
    result = go(lambda: process.turn("on", model))
    assert result.outcome.status is RunStatus.COMPLETED
    (told,) = process.of(result.run_id, HostMessage)
    assert told.sentence_id == SentenceId.TURN_LEFT_OUT
    assert process.owner() is None
    later = go(lambda: process.turn("and on", PlannedModel([says("ok")])))
    assert later.outcome.status is RunStatus.COMPLETED


def test_it_is_never_a_source_and_not_open() -> None:
    world = World()
    damaged(world)
    process = Process(world)
    give_up(process)
    parked = go(lambda: process.resume(PlannedModel([])))
    assert isinstance(parked, Parked)
    assert go(lambda: process.turn("on", PlannedModel([says("ok")]))).outcome.status is RunStatus.COMPLETED


def test_giving_up_again_writes_nothing() -> None:
    world = World()
    dead, operation_id = damaged(world)
    process = Process(world)
    give_up(process)
    before = process.session_events()
    again = give_up(process, "once more")
    assert (again.before, again.watched) == (True, (operation_id,))
    assert process.session_events() == before
    (fact,) = [event for event in before if isinstance(event, RunAbandoned)]
    assert (fact.by, fact.note, fact.run_id) == ("ada", "the disk failed", dead.head())


@pytest.mark.parametrize("topic", ["run.ended.v1", "message.user.v1", "model.step_completed.v1", "tool.called.v1"])
def test_what_it_had_dispatched_is_not_repeated_unasked(topic: str) -> None:
    """Also what it had dispatched behind the damage, of which nothing is vouched for."""
    world, act = World(), Counted()
    damaged(world, topic)
    process = Process(world)
    give_up(process)
    model = PlannedModel([ACT, says("then not")])
    go(lambda: process.turn("again", model, [act.function], gate=DenyGate()))
    assert act.calls == []


@pytest.mark.parametrize("topic", ["run.ended.v1", "message.user.v1"])
def test_a_person_settles_its_operations_and_the_session_is_told(topic: str) -> None:
    world, act = World(), Counted()
    dead, operation_id = damaged(world, topic)
    run_id = dead.head()
    process = Process(world)
    said = SaidBy(operation_id, Statement.NOT_EXECUTED, "ada", "looked at the bank")
    with pytest.raises(SettlementRefused) as caught:
        process.settle(said)
    assert caught.value.code is SettlementRefusal.RUN_DAMAGED
    give_up(process)
    settled = process.settle(said)
    assert (settled.recorded, settled.run_id, settled.told_later) == (Recorded.IN_SESSION, run_id, True)
    assert process.ledger.session(SESSION).watched == {}
    assert process.settle(said).recorded is Recorded.BEFORE
    go(lambda: process.turn("again", PlannedModel([ACT, says("done")]), [act.function]))
    assert act.calls == [1]


def test_its_operations_are_not_settled_while_they_may_run_and_can_be_declared_over() -> None:
    world = World()
    dead, operation_id = damaged(world)
    process = Process(world)
    give_up(process)
    dead.incarnations.delete_lock_file(dead.ownership.incarnation)
    process = Process(world)
    said = SaidBy(operation_id, Statement.COMPLETED, "ada", "seen")
    with pytest.raises(SettlementRefused) as caught:
        process.settle(said)
    assert caught.value.code is SettlementRefusal.OPERATION_NOT_OVER
    over = process.settle(SaidBy(operation_id, Statement.OVER, "ada", "the machine is gone"))
    assert (over.recorded, over.told_later) == (Recorded.IN_SESSION, False)
    assert process.settle(said).recorded is Recorded.IN_SESSION


def test_a_continuation_that_never_started_from_a_damaged_run_is_given_up_too() -> None:
    world = World()
    go(lambda: Process(world).turn("before", PlannedModel([says("fine")])))
    go(lambda: Process(world).turn("go", PlannedModel([ProviderFailed("down")])))
    dead = Process(world)
    dead.events_store.fail_at(ContinuationStarted.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.resume(PlannedModel([])))
    dead.die()
    damage(world, "run.ended.v1")
    process, model = Process(world), PlannedModel([says("ok")])
    with pytest.raises(SessionQuarantined):
        go(lambda: process.turn("on", model))
    assert give_up(process).run_id == dead.head()
    assert go(lambda: process.turn("on", model)).outcome.status is RunStatus.COMPLETED
    assert [item.text for item in model.asked[0].request.history if isinstance(item, UserItem)] == ["before", "on"]


def test_a_run_that_is_not_damaged_is_not_given_up() -> None:
    process = Process()
    go(lambda: process.turn("go", PlannedModel([says("done")])))
    before = process.session_events()
    with pytest.raises(NothingToGiveUp):
        give_up(process)
    assert process.session_events() == before
    assert process.owner() is None


def test_a_session_that_is_damaged_itself_cannot_be_written() -> None:
    world = World()
    damaged(world)
    damage(world, "session.run_admitted.v1")
    process = Process(world)
    with pytest.raises(SessionDamaged):
        give_up(process)
    assert process.owner() is None


def test_a_session_that_another_process_works_on_is_busy() -> None:
    world = World()
    owner = Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    with pytest.raises(SessionBusy):
        give_up(Process(world))
