"""What goes wrong in the store: each caller learns exactly what can be known, and neighbours go on. SPEC section 7."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.tables import Failure
from safepoint.domain.commands import AbandonRun
from safepoint.domain.errors import StoreDamaged, StoreFull, StoreUnavailable
from safepoint.domain.events.event import RunEvent
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import EffectWatched, RunAbandoned
from safepoint.domain.events.tool import Effect
from safepoint.domain.identifiers import RunId
from safepoint.domain.operation.watch_list import is_certain
from safepoint.domain.reasons import WriteRefusal
from safepoint.domain.recovery.event_facts import event_facts
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.domain.recovery.verdict import VerdictStatus

from ..domain.facts import Facts
from .ledger_world import World, refusal, together
from .test_ledger import damaged


def verdict(world: World, operation: str) -> VerdictStatus | None:
    """What the resolver says of an operation when the store is opened again."""
    scanner = Scanner()
    for one in world.stream("run:r"):
        assert isinstance(one.event, RunEvent)
        scanner.feed(event_facts(one.event))
    verdicts = resolve(scanner, foreign=False).verdicts
    return next((verdict.status for verdict in verdicts if verdict.operation_id == operation), None)


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "lost"])
def test_when_commit_fails_every_caller_of_the_group_is_told_that_it_is_unknown(world: World, stored: bool) -> None:
    runs = [world.opened(f"r{n}", "a", session=f"s{n}") for n in range(3)]
    commands = [r.prepare(r.dispatch("a")) for r in runs]
    world.events.before_append(lambda: world.fail_commit(stored=stored), after=1)
    refused = runs[0].refuse(runs[0].refusal("a", call_id="x"))
    callers = together(world, *commands, refused)
    for caller in callers:
        assert isinstance(caller.error, StoreUnavailable)
        assert caller.error.code is WriteRefusal.STORE_UNAVAILABLE
    for number in range(3):
        assert len(world.stream(f"run:r{number}")) == 4 + stored
        assert world.ledger.run(RunId(f"r{number}")).sequence == 4 + stored
    for command in commands:
        receipt = world.ledger.execute(command)
        assert receipt.first is not stored
    assert world.consistent()


def test_r3_171_a_full_store_before_the_dispatch_writes_nothing_and_the_run_can_go_on(world: World) -> None:
    r = world.opened("r", "a")
    dispatch = r.prepare(r.dispatch("a"))
    world.fill_up()
    with pytest.raises(StoreFull) as caught:
        world.ledger.execute(dispatch)
    assert caught.value.code is WriteRefusal.STORE_FULL
    assert world.topics()[-1] == "model.step_completed.v1"
    assert world.ledger.execute(dispatch).first


def test_r3_171_a_tool_that_says_no_space_is_an_ordinary_outcome(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    said = r.outcome("a", result="No space left on device", is_error=True, effect=Effect.UNKNOWN)
    assert world.ledger.execute(r.commit(said)).first
    assert verdict(world, "op-r-a") is VerdictStatus.COMPLETED


def test_r3_171_a_full_store_at_the_outcome_leaves_the_operation_indeterminate(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    world.fill_up()
    with pytest.raises(StoreFull):
        world.ledger.execute(r.commit(r.outcome("a")))
    assert verdict(world, "op-r-a") is VerdictStatus.INDETERMINATE


def test_r3_156_a_damaged_session_keeps_no_other_from_its_terminal_event(world: World) -> None:
    """Corrupt facts of session S1 in the store; a run in S2 ends normally."""
    bad, good = damaged(world, "a"), world.opened("q", session="s2")
    callers = together(world, bad.append(bad.cancelled()), good.end(RunStatus.COMPLETED), bad.end())
    assert isinstance(callers[0].error, StoreDamaged)
    assert callers[1].receipt is not None
    assert isinstance(callers[2].error, StoreDamaged)
    assert world.topics("run:q")[-1] == "run.ended.v1"
    scanner = Scanner()
    for one in world.stream("run:r"):
        assert isinstance(one.event, RunEvent)
        scanner.feed(event_facts(one.event))
    assert resolve(scanner, foreign=False).has_corruption


def test_a_chain_that_does_not_verify_fails_closed_and_alone(memory: World) -> None:
    """A stored byte was changed behind the ledger's back; the same for SQLite's bytes is tried where its adapter is."""
    r, other = memory.opened("r", "a"), memory.opened("q", session="t")
    assert isinstance(memory.store, MemoryStore)
    tables = memory.store._tables
    row = tables.streams["run:r"][1]
    tables.records[row] = tables.records[row]._replace(state=tables.records[row].state.replace(b"do it", b"do no"))
    memory.ledger.forget(r.session_id)
    callers = together(memory, r.append(r.cancelled()), other.append(other.cancelled()))
    assert isinstance(callers[0].error, StoreDamaged)
    assert callers[1].receipt is not None
    with pytest.raises(StoreDamaged):
        memory.ledger.run(RunId("r"))
    with pytest.raises(StoreDamaged):
        memory.ledger.execute(memory.facts("r2").open_run())


def test_a_commit_that_touches_damaged_pages_fails_for_its_caller_alone(world: World) -> None:
    r, other = world.opened(), world.opened("q", session="t")
    world.events.before_append(world.events.damage_next, after=1)
    callers = together(world, r.append(r.cancelled()), other.append(other.cancelled()))
    assert isinstance(callers[0].error, StoreDamaged)
    assert "page" in callers[0].error.detail
    assert callers[1].receipt is not None
    assert world.topics() == ["run.opened.v1", "message.user.v1"]


def test_a_refused_candidate_is_not_a_damaged_store(world: World) -> None:
    """After the first the run can still write its terminal event."""
    r = world.opened("r", "a")
    assert refusal(world.ledger, r.commit(r.outcome("a"))).code == "transition_shape_conflict"
    assert world.ledger.execute(r.end()).first


@pytest.mark.parametrize("look", ["the state of a run", "a decision"])
def test_r3_165_a_look_that_fails_is_store_unavailable_and_never_an_answer(memory: World, look: str) -> None:
    """The look for the dispatch raises `store_unavailable`; the dispatch really exists."""
    r = memory.opened("r", "a")
    memory.ledger.execute(r.prepare(r.dispatch("a")))
    fresh = memory.another_ledger()
    assert isinstance(memory.store, MemoryStore)
    memory.store.fail_next(Failure.UNREADABLE)
    with pytest.raises(StoreUnavailable):
        fresh.run(RunId("r")) if look == "the state of a run" else fresh.execute(r.end())
    assert [one.call_id for one in fresh.run(RunId("r")).tools.unanswered()] == ["a"]
    assert verdict(memory, "op-r-a") is VerdictStatus.INDETERMINATE


def test_a_refusal_that_could_not_be_looked_into_is_unavailable_for_its_caller_alone(memory: World) -> None:
    r, other = memory.opened("r", "a"), memory.opened("q", session="t")
    store = memory.store
    assert isinstance(store, MemoryStore)
    memory.events.before_append(lambda: store.fail_next(Failure.UNREADABLE), after=1)
    callers = together(memory, r.commit(r.outcome("a")), other.append(other.cancelled()))
    assert isinstance(callers[0].error, StoreUnavailable)
    assert callers[1].receipt is not None


def tamper(world: World, stream: str, version: int) -> None:
    """Change a stored byte behind the ledger's back."""
    assert isinstance(world.store, MemoryStore)
    tables = world.store._tables
    row = tables.streams[stream][version - 1]
    record = tables.records[row]
    tables.records[row] = record._replace(state=record.state.replace(b"2026", b"2027"))
    for session in ("s", "t"):
        world.ledger.forget(Facts(session=session).session_id)


@pytest.mark.parametrize("kept", [1, 2])
def test_an_id_that_is_known_and_whose_event_is_gone_is_damage_and_no_new_command(memory: World, kept: int) -> None:
    r = memory.opened()
    command = r.append(r.cancelled())
    memory.ledger.execute(command)
    assert isinstance(memory.store, MemoryStore)
    del memory.store._tables.streams["run:r"][kept:]
    memory.ledger.forget(r.session_id)
    with pytest.raises(StoreDamaged, match="not there"):
        memory.ledger.execute(command)


def test_a_damaged_head_run_keeps_nobody_from_settling_an_earlier_one(memory: World) -> None:
    r = memory.opened("r", "a")
    dispatch = r.dispatch("a")
    memory.ledger.execute(r.prepare(dispatch))
    memory.ledger.execute(r.end())
    memory.opened("r2")
    tamper(memory, "run:r2", 2)
    bundle = r.recovery(dispatch, len(memory.stream("run:r")), outcome=r.outcome("a"))
    written = memory.ledger.execute(bundle)
    assert written.first
    guarded = [one.event for one in written.events if isinstance(one.event, EffectWatched)]
    assert [(one.operation_id, is_certain(one)) for one in guarded] == [(dispatch.operation_id, True)], (
        "the damaged run was shown it as unknown: it is guarded until the next one is told"
    )


def test_a_head_run_that_does_not_verify_can_be_given_up_and_a_new_turn_begun(memory: World) -> None:
    r = memory.opened("r", "a")
    memory.ledger.execute(r.prepare(r.dispatch("a")))
    memory.ledger.execute(r.append(r.cancelled()))
    tamper(memory, "run:r", 5)
    turn = memory.facts("r2")
    with pytest.raises(StoreDamaged):
        memory.ledger.execute(turn.open_run())
    wrong = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=6)
    assert refusal(memory.ledger, AbandonRun(*r.guard, run_id=r.run_id, abandoned=wrong)).code == (
        "transition_shape_conflict"
    )
    fact = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=5)
    written = memory.ledger.execute(AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact))
    assert [one.event.topic for one in written.events] == ["session.run_abandoned.v1", "session.effect_watched.v1"]
    assert memory.ledger.execute(Facts("r2", maker="'").open_run()).first
