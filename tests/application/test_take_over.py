"""A person takes a session from an owner that lives: it is ended, or fenced and left alone. SPEC section 15."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.application.ownership import SessionBusy
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.repair_session import RepairKind
from safepoint.application.resume_run import Continued
from safepoint.application.take_over import TakenOver, TakeOver, TakeoverRefused, TookOver
from safepoint.domain.errors import WriteRefused
from safepoint.domain.events.run import RunEnded, RunStatus
from safepoint.domain.events.tool import ToolDispatched
from safepoint.domain.identifiers import SessionId
from safepoint.domain.planning.outcome import Park
from safepoint.domain.reasons import ParkReason, WriteRefusal
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.incarnations import Incarnation, Liveness
from safepoint.ports.provider_failures import ProviderFailed

from .counted_tools import Counted
from .wiring import SESSION, Process, World, beside, check_sound, go, until

OTHER = SessionId("s2")
_OF_OPERATIONS = frozenset({ParkReason.DANGLING_TOOL_STATE, ParkReason.EFFECT_MAY_BE_RUNNING})
ACT = calls(("act", {"n": 1}))


class Slow:
    """A tool that works until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()

        def act(n: int) -> str:
            """Act."""
            self.began.set()
            self.let_go.wait(60)
            return "acted"

        self.function = act


def take_over(process: Process) -> TakeOver:
    return TakeOver(process.ownership, process.repair, process.world.store, end_seconds=0.1)


async def refused_turn(process: Process, slow: Slow) -> WriteRefused:
    """A turn that comes to its end in another's session."""
    with pytest.raises(WriteRefused) as caught:
        await process.turn("go", PlannedModel([ACT, says("never")]), [slow.function])
    return caught.value


def fenced_while_a_tool_runs(owner: Process, then: Callable[[], object] = lambda: None) -> tuple[Process, WriteRefused]:
    """A second process fences the owner while its tool works; then the tool returns."""
    slow, other = Slow(), Process(owner.world)

    async def fence() -> None:
        await until(slow.began.is_set)
        await anyio.to_thread.run_sync(lambda: take_over(other)(SESSION, fence_only=True))
        then()
        slow.let_go.set()

    return other, go(lambda: beside(fence, refused_turn(owner, slow)))


def parked(process: Process) -> frozenset[ParkReason]:
    decided = process.plan(SESSION, process.agent([]), PlanRequest()).plan
    assert isinstance(decided, Park)
    return frozenset(reason.code for reason in decided.reasons) & _OF_OPERATIONS


def test_a_session_that_nobody_owns_or_whose_owner_is_dead_is_taken_at_once() -> None:
    world = World()
    first = Process(world)
    go(lambda: first.turn("go", PlannedModel([says("done")])))
    assert take_over(Process(world))(SESSION).how is TookOver.UNOWNED
    first.ownership.keep(first.ownership.own(SESSION))
    first.die()
    taken = take_over(Process(world))(SESSION)
    assert (taken.how, taken.owner) == (TookOver.AFTER_DEATH, first.ownership.incarnation)


def test_a_living_owner_is_ended_and_its_run_is_closed_as_interrupted() -> None:
    world, slow = World(), Slow()
    owner, other = Process(world), Process(world)
    taken: list[TakenOver] = []
    told: list[tuple[Incarnation, tuple[SessionId, ...], float]] = []
    owner.ownership.keep(owner.ownership.own(OTHER))

    def ending(who: Incarnation, others: tuple[SessionId, ...], seconds: float) -> None:
        told.append((who, others, seconds))

    async def take() -> None:
        await until(slow.began.is_set)
        taken.append(await anyio.to_thread.run_sync(lambda: take_over(other)(SESSION, ending=ending)))
        slow.let_go.set()

    # What goes on here is the ghost of the process that was ended.
    assert go(lambda: beside(take, refused_turn(owner, slow))).code is WriteRefusal.OWNER_FENCED
    assert told == [(owner.ownership.incarnation, (OTHER,), 0.1)]
    assert (taken[0].how, taken[0].others) == (TookOver.ENDED, (OTHER,))
    assert (taken[0].repaired.kind, taken[0].repaired.status) == (RepairKind.RUN_CLOSED, RunStatus.FAILED)
    assert other.not_over(other.head()) == ()
    check_sound(other, other.head())
    assert other.owner() is None


def test_an_owner_that_cannot_be_looked_at_is_left_alone_and_nothing_is_written() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    owner.incarnations.delete_lock_file(owner.ownership.incarnation)
    with pytest.raises(TakeoverRefused, match="could not be looked at") as caught:
        take_over(other)(SESSION)
    assert (caught.value.owner, caught.value.liveness) == (owner.ownership.incarnation, Liveness.COULD_NOT_LOOK)
    assert owner.owner() == owner.ownership.incarnation.incarnation_id


def test_an_owner_that_does_not_end_keeps_the_session() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    owner.incarnations.ends = False
    with pytest.raises(TakeoverRefused, match=r"did not end within 0\.1 seconds") as caught:
        take_over(other)(SESSION)
    assert caught.value.liveness is Liveness.ALIVE
    assert owner.owner() == owner.ownership.incarnation.incarnation_id


def test_a_process_never_ends_or_fences_itself() -> None:
    process = Process()
    owned = process.ownership.own(SESSION)
    for fence_only in (False, True):
        with pytest.raises(SessionBusy):
            take_over(process)(SESSION, fence_only=fence_only)
    assert process.ownership.end_owner(process.ownership.incarnation, 0.1) is Liveness.ALIVE
    process.ownership.release(owned)


def test_what_a_fenced_owner_does_goes_on_and_its_outcome_is_refused_and_changes_nothing() -> None:
    owner = Process()
    before: list[list[bytes]] = []
    other, refused = fenced_while_a_tool_runs(owner, lambda: before.append(owner.stored_bytes(owner.head())))
    assert refused.code is WriteRefusal.OWNER_FENCED
    assert [other.stored_bytes(other.head())] == before
    assert [event.failure_class for event in other.of(other.head(), RunEnded)] == ["app_restarted"]
    check_sound(other, other.head())


def test_the_operations_of_a_fenced_owner_are_not_over_while_it_lives_and_nothing_goes_past_them() -> None:
    owner = Process()
    other, _ = fenced_while_a_tool_runs(owner)
    assert len(other.not_over(other.head())) == 1
    assert parked(other) == {ParkReason.DANGLING_TOOL_STATE, ParkReason.EFFECT_MAY_BE_RUNNING}
    owner.die()
    assert other.not_over(other.head()) == ()
    assert parked(other) == {ParkReason.DANGLING_TOOL_STATE}


def test_the_death_of_a_second_owner_proves_nothing_of_one_that_was_fenced_before() -> None:
    owner = Process()
    other, _ = fenced_while_a_tool_runs(owner)
    other.ownership.keep(other.ownership.own(SESSION))
    other.die()
    third = Process(owner.world)
    taken = take_over(third)(SESSION)
    assert (taken.how, taken.owner) == (TookOver.AFTER_DEATH, other.ownership.incarnation)
    assert len(third.not_over(third.head())) == 1
    assert ParkReason.EFFECT_MAY_BE_RUNNING in parked(third)


def test_a_fenced_owner_dispatches_nothing_more() -> None:
    world, act = World(), Counted()
    owner, other = Process(world), Process(world)

    def evidence(typed: object, workspace: object) -> str:
        take_over(other)(SESSION, fence_only=True)  # between the admission of the call and its T1
        return "seen"

    counted = Counted(evidence=evidence)
    with pytest.raises(WriteRefused) as caught:
        go(lambda: owner.turn("go", PlannedModel([ACT, says("never")]), [counted.function]))
    assert caught.value.code is WriteRefusal.OWNER_FENCED
    assert counted.calls == []
    assert other.of(other.head(), ToolDispatched) == []
    result = go(lambda: other.turn("go on", PlannedModel([ACT, says("done")]), [act.function]))
    assert result.outcome.status is RunStatus.COMPLETED
    assert act.calls == [1]


def test_an_owner_that_is_fenced_between_its_claim_and_its_start_asks_no_model() -> None:
    world, model = World(), PlannedModel([says("never")])
    go(lambda: Process(world).turn("go", PlannedModel([ProviderFailed("down")])))
    other = Process(world)
    taken: list[TakenOver] = []

    def at(point: str) -> None:
        if point == Failpoint.CLAIM_COMMITTED:
            taken.append(take_over(other)(SESSION, fence_only=True))

    owner = Process(world, at_failpoint=at)
    with pytest.raises(WriteRefused) as caught:
        go(lambda: owner.resume(model))
    assert caught.value.code is WriteRefusal.OWNER_FENCED
    assert model.asked == []
    (one,) = taken
    assert (one.how, one.repaired.kind) == (TookOver.FORCED, RepairKind.CLAIM_REPAIRED)
    assert other.topics(other.head()) == ["continuation.started", "run.ended"]
    check_sound(other, other.head())
    again = go(lambda: other.resume(PlannedModel([says("done")])))
    assert isinstance(again, Continued)


def test_an_owner_that_could_not_be_looked_at_can_be_fenced() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    owner.incarnations.delete_lock_file(owner.ownership.incarnation)
    taken = take_over(other)(SESSION, fence_only=True)
    assert (taken.how, taken.repaired.kind) == (TookOver.FORCED, RepairKind.NOTHING_OPEN)
    assert other.owner() is None


def test_a_dead_owner_needs_no_force() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    owner.die()
    assert take_over(other)(SESSION, fence_only=True).how is TookOver.AFTER_DEATH


def test_whoever_took_the_session_meanwhile_is_not_fenced_instead() -> None:
    """The person saw one owner, and only that one may be fenced."""
    world = World()
    owner, faster, other = Process(world), Process(world), Process(world)
    owned = owner.ownership.own(SESSION)
    seen = owner.ownership.incarnation.incarnation_id
    owner.ownership.release(owned)
    faster.ownership.own(SESSION)
    with pytest.raises(SessionBusy) as caught:
        other.ownership.own(SESSION, fencing=seen)
    assert caught.value.owner == faster.ownership.incarnation
