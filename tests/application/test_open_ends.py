"""What has an open end stays owned, so that repair at the next start finds it. SPEC section 11 and ADR 0088."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost
from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.give_up_run import GiveUpRun
from safepoint.application.open_ends import End, end_of
from safepoint.application.reconcile_operations import Hands
from safepoint.application.repair_session import RepairKind
from safepoint.application.run_turn import SessionQuarantined
from safepoint.domain.commands import AbandonRun, ClaimContinuation, StartContinuation
from safepoint.domain.errors import StoreDamaged, StoreFull, StoreUnavailable, WriteRefused
from safepoint.domain.events.model import ModelStepCompleted
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.session import RunAbandoned, RunKind
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.reasons import WriteRefusal
from safepoint.ports.event_store import Commit, EventReader, OwnerGuard, Standing

from ..adapters.cli.test_deleted_ends import delete_newest
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


def end(life: Life) -> End:
    return end_of(life.ledger, SessionId("a"))


def test_a_session_is_open_until_its_newest_run_has_an_end(life: Life) -> None:
    assert end(life) is End.CLOSED
    r = life.opens("a", "x")
    assert end(life) is End.OPEN
    life.repair(life.ownership.own(r.session_id))
    assert end(life) is End.CLOSED


def test_a_claim_whose_target_has_no_event_is_open(life: Life) -> None:
    target = life.claims("a")
    assert end(life) is End.OPEN
    life.repair(life.ownership.own(target.session_id))
    assert end(life) is End.CLOSED


def test_what_repair_cannot_close_is_not_open(memory: LedgerWorld) -> None:
    """It waits for a person, who may come with another process."""
    life = Life(memory, MemoryHost())
    r = damaged(memory, "x")
    assert end_of(life.ledger, r.session_id) is End.DAMAGED
    fact = r.fact(RunAbandoned, run_id=r.run_id, by="Ada", note="", last_good_sequence=2)
    memory.ledger.execute(AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact))
    assert end_of(memory.ledger, r.session_id) is End.CLOSED


def test_a_run_that_was_admitted_and_that_no_claim_names_is_damaged(life: Life) -> None:
    r = life.facts("a", "r-a")
    events = sealed([r.session_opened(), r.admitted(RunKind.CONTINUATION, claim_id="claim")])
    life.world.events.append([Commit(OwnerGuard(*r.guard), tuple(events))])
    assert end(life) is End.DAMAGED


def test_a_claim_whose_source_contradicts_itself_is_damaged(life: Life) -> None:
    """Written by somebody who went past the ledger."""
    r = life.facts("a", "r-a")
    target = Facts("t-a", session="a", incarnation=r.incarnation_id, epoch=r.epoch)
    r.step("x")
    run = [r.opened(), r.refusal("x"), r.ended()]
    claim = r.claim(target, [prefix(r, run)])
    session = sealed([r.session_opened(), r.admitted(), claim.admitted])
    life.world.events.append([Commit(OwnerGuard(*r.guard), (*session, *sealed([*run, claim.claimed])))])
    assert end(life) is End.DAMAGED


def test_what_cannot_be_read_is_not_called_closed(memory: LedgerWorld) -> None:
    life = Life(memory, MemoryHost())
    life.opens("a")
    life.ledger.forget(SessionId("a"))
    assert isinstance(memory.store, MemoryStore)
    memory.store.fail_next(Failure.UNREADABLE)
    assert end(life) is End.UNSEEN


def test_a_run_behind_which_an_event_is_missing_is_damaged(tmp_path: Path) -> None:
    with closing(LedgerWorld("sqlite", tmp_path)) as world:
        life = Life(world, MemoryHost())
        r = life.opens("a", "x")
        life.ledger.execute(r.prepare(r.dispatch("x")))
        life.opens("b")
        assert end(life) is End.OPEN
        delete_newest(tmp_path / "store.sqlite", "tool.dispatched.v1", "a")
        assert end(life) is End.DAMAGED
        assert life.repair(life.ownership.own(r.session_id)).kind is RepairKind.QUARANTINED


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


# ---- what nobody can close -------------------------------------------------------------------------------------------


def _a_gap_behind(run_id: RunId, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in SQLite, where rows were deleted."""
    with world.store.events.snapshot() as reader:
        readers: Any = type(reader)
    standing = readers.standing

    def with_a_gap(self: EventReader, of_run: RunId) -> Standing:
        found: Standing = standing(self, of_run)
        return found._replace(gap=of_run == run_id)

    monkeypatch.setattr(readers, "standing", with_a_gap)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_repair_cannot_close_is_kept_by_no_living_process_and_named_by_each_start(
    use: Callable[[Process], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event is missing behind its run. A host that was only refused lives for weeks; `abandon` is the way on."""
    world = World()
    run_id = interrupted(world)
    dead = world.store.owners.owner(SESSION)
    assert dead is not None
    _a_gap_behind(run_id, world, monkeypatch)
    living = Process(world)
    with suppress(SessionQuarantined):
        use(living)
    assert (living.owner(), living.ownership.in_use(SESSION)) == (dead.incarnation_id, False)
    assert living.of(run_id, RunEnded) == []
    for _ in range(2):
        host = Hosting(world)
        assert [one.session_id for one in host.everything().quarantined] == [SESSION]
        host.die()
    person = Process(world)
    give_up = GiveUpRun(person.events_store, person.ledger, person.ownership, person.repair, person.spines)
    assert give_up(SESSION, by="Ada", note="looked").run_id == run_id
    assert person.owner() is None


# ---- not the error decides but the facts -----------------------------------------------------------------------------


@pytest.mark.parametrize("stands", [False, True], ids=["no claim", "a claim stands"])
def test_a_continuation_that_is_refused_gives_the_session_up_unless_a_claim_stands(
    stands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    interrupted(world)
    process = Process(world)
    execute = process.ledger.execute

    def refuse(command: Any) -> Any:
        if isinstance(command, StartContinuation if stands else ClaimContinuation):
            raise WriteRefused(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "it does not fit")
        return execute(command)

    monkeypatch.setattr(process.ledger, "execute", refuse)
    with pytest.raises(WriteRefused):
        _resume(process)
    me = process.ownership.incarnation.incarnation_id
    assert (process.owner(), process.ownership.in_use(SESSION)) == (me if stands else None, False)


@pytest.mark.parametrize("use", ["resume", "reconcile"])
def test_a_refusal_after_repair_gives_the_session_up_and_an_error_of_the_store_keeps_it(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, stays in (
        (WriteRefused(WriteRefusal.OPERATION_NOT_OVER, "it may go on"), False),
        (StoreDamaged("nothing was written"), False),
        (StoreUnavailable("what was written is not known"), True),
    ):
        world = World()
        interrupted(world)
        process = Process(world)

        def fails(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        where = process.resume_run if use == "resume" else process.reconcile_session
        monkeypatch.setattr(where, "_settle_jobs", fails)
        with pytest.raises(type(error)):
            USES[use](process)
        me = process.ownership.incarnation.incarnation_id
        assert (process.owner(), process.ownership.in_use(SESSION)) == (me if stays else None, False)
