"""What has an open end stays owned, so that repair at the next start finds it. SPEC section 11 and ADR 0088."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost
from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.open_ends import is_open
from safepoint.application.reconcile_operations import Hands
from safepoint.domain.commands import AbandonRun
from safepoint.domain.errors import StoreFull, StoreUnavailable, WriteRefused
from safepoint.domain.events.model import ModelStepCompleted
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.session import RunAbandoned, RunKind
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.reasons import WriteRefusal
from safepoint.ports.event_store import Commit, OwnerGuard

from ..domain.facts import Facts, prefix, sealed
from .hosting import Hosting, act, interrupted
from .ledger_world import World as LedgerWorld
from .repair_world import Life
from .test_ledger import damaged
from .test_time_outs import SOON, Stuck
from .wiring import SESSION, Process, World, go, until

# ---- what is open ----------------------------------------------------------------------------------------------------


@pytest.fixture
def life(world: LedgerWorld) -> Life:
    return Life(world, MemoryHost())


def open_of(life: Life) -> bool:
    return is_open(life.ledger, SessionId("a"))


def test_a_session_is_open_until_its_newest_run_has_an_end(life: Life) -> None:
    assert not open_of(life)
    r = life.opens("a", "x")
    assert open_of(life)
    life.repair(life.ownership.own(r.session_id))
    assert not open_of(life)


def test_a_claim_whose_target_has_no_event_is_open(life: Life) -> None:
    target = life.claims("a")
    assert open_of(life)
    life.repair(life.ownership.own(target.session_id))
    assert not open_of(life)


def test_what_repair_cannot_close_is_not_open(memory: LedgerWorld) -> None:
    """It waits for a person, who may come with another process."""
    life = Life(memory, MemoryHost())
    r = damaged(memory, "x")
    assert not is_open(life.ledger, r.session_id)
    fact = r.fact(RunAbandoned, run_id=r.run_id, by="Ada", note="", last_good_sequence=2)
    memory.ledger.execute(AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact))
    assert not is_open(memory.ledger, r.session_id)


def test_a_run_that_was_admitted_and_that_no_claim_names_is_not_open(life: Life) -> None:
    r = life.facts("a", "r-a")
    events = sealed([r.session_opened(), r.admitted(RunKind.CONTINUATION, claim_id="claim")])
    life.world.events.append([Commit(OwnerGuard(*r.guard), tuple(events))])
    assert not open_of(life)


def test_a_claim_whose_source_contradicts_itself_is_not_open(life: Life) -> None:
    """Written by somebody who went past the ledger."""
    r = life.facts("a", "r-a")
    target = Facts("t-a", session="a", incarnation=r.incarnation_id, epoch=r.epoch)
    r.step("x")
    run = [r.opened(), r.refusal("x"), r.ended()]
    claim = r.claim(target, [prefix(r, run)])
    session = sealed([r.session_opened(), r.admitted(), claim.admitted])
    life.world.events.append([Commit(OwnerGuard(*r.guard), (*session, *sealed([*run, claim.claimed])))])
    assert not open_of(life)


def test_what_cannot_be_read_is_not_called_closed(memory: LedgerWorld) -> None:
    life = Life(memory, MemoryHost())
    life.opens("a")
    life.ledger.forget(SessionId("a"))
    assert isinstance(memory.store, MemoryStore)
    memory.store.fail_next(Failure.UNREADABLE)
    with pytest.raises(StoreUnavailable):
        open_of(life)


# ---- it stays owned --------------------------------------------------------------------------------------------------


def repaired_by_the_next_start(world: World, run_id: RunId) -> None:
    """A host opens, and has closed the run."""
    host = Hosting(world)

    async def opened() -> None:
        async with host.host():
            pass

    go(opened)
    assert [ended.recovered for ended in host.of(run_id, RunEnded)] == [True]
    assert host.owner() is None


def _turn(process: Process) -> Any:
    return go(lambda: process.turn("something else", [says("yes")]))


def _resume(process: Process) -> Any:
    return go(lambda: process.resume([says("yes")], [act]))


def _reconcile(process: Process) -> Any:
    return go(lambda: process.reconcile_session(SESSION, Hands(FunctionCatalog([act]))))


def _cancel(process: Process) -> Any:
    return process.cancel(SESSION, "Ada")


USES: dict[str, Callable[[Process], Any]] = {
    "turn": _turn,
    "resume": _resume,
    "reconcile": _reconcile,
    "cancel": _cancel,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_where_repair_is_refused_the_session_stays_owned_so_that_the_next_start_repairs_it(
    use: Callable[[Process], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    run_id = interrupted(world)
    process = Process(world)

    def refuse(command: Any) -> Any:
        raise WriteRefused(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "it does not fit")

    monkeypatch.setattr(process.ledger, "execute", refuse)
    with pytest.raises(WriteRefused):
        use(process)
    assert process.owner() == process.ownership.incarnation.incarnation_id
    assert not process.ownership.in_use(SESSION)
    process.die()
    repaired_by_the_next_start(world, run_id)


def test_a_use_that_is_refused_after_repair_gives_the_session_up() -> None:
    """A host lives for weeks: others must get at a session of which nothing is open."""
    world = World()
    run_id = interrupted(world)
    process = Process(world)

    def refused_late() -> None:
        with process.ownership.held(SESSION) as owned:
            process.repair(owned)
            raise WriteRefused(WriteRefusal.OPERATION_NOT_OVER, "it may go on")

    with pytest.raises(WriteRefused):
        refused_late()
    assert ([ended.recovered for ended in process.of(run_id, RunEnded)], process.owner()) == ([True], None)


def test_an_operation_that_ends_late_does_not_give_up_what_a_later_turn_left_open() -> None:
    act = Stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    model = [calls(("act", {})), says("done")]
    go(lambda: process.turn("go", model, [act.function]))
    process.events_store.fail_at(ModelStepCompleted.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.turn("something else", [says("yes")]))
    turn = process.head()
    act.let_go.set()
    go(lambda: until(lambda: not process.live.of(SESSION)))
    assert process.owner() == process.ownership.incarnation.incarnation_id
    process.die()
    repaired_by_the_next_start(process.world, turn)
