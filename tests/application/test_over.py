"""Whether anything that an operation started can still run: by the life of every delivery. SPEC section 15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.supervisor import MemorySupervisor
from safepoint.application.live_operations import LiveOperations
from safepoint.application.over import OverJudge, attached_jobs
from safepoint.application.ownership import SessionOwnership
from safepoint.domain.events.event import Event, RunEvent
from safepoint.domain.events.outside import BackgroundSettled
from safepoint.domain.events.tool import Life, Observation, RecoveryMode, Statement, ToolDispatched
from safepoint.domain.identifiers import IncarnationId, OperationId
from safepoint.domain.planning.survey import Survey
from safepoint.domain.recovery.event_facts import event_facts
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.ports.incarnations import Liveness
from safepoint.ports.supervised import Command, Overness

from ..domain.facts import Facts, run_of


class World:
    """Two processes of one host: `owner` made the dispatches, `mine` looks."""

    def __init__(self) -> None:
        store, host = MemoryStore(), MemoryHost()
        self.owner, mine = MemoryIncarnations(host), MemoryIncarnations(host)
        self.theirs = SessionOwnership(store.owners, self.owner, lambda _: None)
        self.mine = SessionOwnership(store.owners, mine, lambda _: None)
        self.supervisor = MemorySupervisor({"true": lambda _: 0})
        self.live = LiveOperations()
        self.judge = OverJudge(self.mine, self.supervisor, self.live)
        self.r = Facts(incarnation=self.theirs.incarnation.incarnation_id)

    def begun(self, life: Life = Life.TASK, by: IncarnationId | None = None) -> list[Event]:
        """A run with a dispatch of that life."""
        owner = by or self.r.incarnation_id
        dispatch = {"life": life, "incarnation_id": owner, "idempotency_key": "key"}
        step = self.r.step("a")
        return [self.r.opened(), *step, self.r.dispatch("a", RecoveryMode.IDEMPOTENT, **dispatch)]

    def seen(self, history: list[Event]) -> list[tuple[OperationId, Overness]]:
        """What is not over, asked in both ways, which must agree."""
        scanner = Scanner()
        events = [event for event in history if isinstance(event, RunEvent)]
        for event in events:
            scanner.feed(event_facts(event))
        of_events = self.judge.not_over(Survey(events), resolve(scanner, foreign=False))
        of_state = self.judge.not_over_in(run_of(history))
        assert of_events == of_state
        return [(state.operation_id, state.overness) for state in of_events]


Given = Callable[[World, list[Event]], Any]
TASKS: dict[str, tuple[Given, Overness | None]] = {
    "its owner lives": (lambda w, h: None, Overness.RUNNING),
    "its owner is dead": (lambda w, h: w.owner.die(), None),
    "its owner could not be looked at": (
        lambda w, h: w.owner.tell(w.theirs.incarnation, Liveness.COULD_NOT_LOOK),
        Overness.COULD_NOT_LOOK,
    ),
    "its owner's lock file is gone": (
        lambda w, h: w.owner.delete_lock_file(w.theirs.incarnation),
        Overness.COULD_NOT_LOOK,
    ),
}


@pytest.mark.parametrize(("given", "overness"), TASKS.values(), ids=TASKS)
def test_a_task_is_over_when_its_owner_is_proven_dead(given: Given, overness: Overness | None) -> None:
    world = World()
    history = world.begun()
    given(world, history)
    assert world.seen(history) == ([] if overness is None else [("op-r-a", overness)])


def test_the_process_of_an_owner_that_lives_is_named_also_after_it_was_fenced() -> None:
    world = World()
    (delivery,) = [event for event in world.begun() if isinstance(event, ToolDispatched)]
    named = world.judge.judge(delivery.operation_id, [delivery]).processes
    owner = world.theirs.incarnation
    assert [(one.pid, one.process_start_time) for one in named] == [(owner.pid, owner.process_start_time)]
    world.owner.die()
    assert world.judge.judge(delivery.operation_id, [delivery]).processes == ()


def test_a_task_of_this_process_is_over_when_nothing_of_it_is_left_here() -> None:
    world = World()
    history = world.begun(by=world.mine.incarnation.incarnation_id)
    operation = OperationId("op-r-a")
    world.live.began(operation, world.r.session_id)
    assert world.seen(history) == [(operation, Overness.RUNNING)]
    world.live.ended(operation)
    assert world.seen(history) == []


@pytest.mark.parametrize("state", ["its lock is held", "its last process has ended", "nobody has heard of it"])
def test_a_supervised_operation_is_over_when_its_lock_can_be_taken_whatever_became_of_its_owner(state: str) -> None:
    world = World()
    history = world.begun(Life.SUPERVISED)
    world.owner.die()
    if state != "nobody has heard of it":
        slot = world.supervisor.prepare(OperationId("op-r-a"))
        if state == "its last process has ended":
            slot.start(Command(("true",)))
            assert slot.wait(30) is not None
    expected = {
        "its lock is held": Overness.RUNNING,
        "its last process has ended": None,
        "nobody has heard of it": Overness.COULD_NOT_LOOK,
    }[state]
    seen = world.seen(history)
    assert seen == ([] if expected is None else [("op-r-a", expected)])
    if state == "its lock is held":
        (one,) = world.judge.not_over_in(run_of(history))
        assert one.processes


def test_every_delivery_counts_and_the_worst_of_them_speaks() -> None:
    world = World()
    history = world.begun()
    again = SessionOwnership(world.mine._owners, MemoryIncarnations(world.owner.host), lambda _: None)
    history += [world.r.redelivery("a", incarnation_id=again.incarnation.incarnation_id).started]
    assert world.seen(history) == [("op-r-a", Overness.RUNNING)]
    world.owner.die()
    assert world.seen(history) == [("op-r-a", Overness.RUNNING)]
    world.owner.tell(again.incarnation, Liveness.COULD_NOT_LOOK)
    assert world.seen(history) == [("op-r-a", Overness.COULD_NOT_LOOK)]
    world.owner.tell(again.incarnation, Liveness.DEAD)
    assert world.seen(history) == []


def test_the_first_delivery_may_outlive_the_second() -> None:
    world = World()
    history = world.begun()
    again = SessionOwnership(world.mine._owners, MemoryIncarnations(world.owner.host), lambda _: None)
    history += [world.r.redelivery("a", incarnation_id=again.incarnation.incarnation_id).started]
    world.owner.tell(again.incarnation, Liveness.DEAD)
    assert world.seen(history) == [("op-r-a", Overness.RUNNING)]


def test_any_other_answer_means_over() -> None:
    world = World()
    history = [*world.begun(), world.r.outcome("a")]
    assert world.seen(history) == []


@pytest.mark.parametrize(
    ("detached", "settled", "asked"),
    [(False, False, True), (False, True, False), (True, False, False)],
    ids=["attached", "settled", "detached"],
)
def test_an_answer_that_left_work_running_is_asked_about_until_that_settles(
    detached: bool, settled: bool, asked: bool
) -> None:
    world = World()
    history = [*world.begun(), world.r.outcome("a"), world.r.left_running("a", detached=detached)]
    if settled:
        history += [world.r.fact(BackgroundSettled, handle_id="job-a", status="ended")]
    assert world.seen(history) == ([("op-r-a", Overness.RUNNING)] if asked else [])
    assert [job.handle_id for job in attached_jobs(run_of(history))] == (["job-a"] if asked else [])


def test_a_call_that_was_not_dispatched_started_nothing() -> None:
    world = World()
    assert world.seen([world.r.opened(), *world.r.step("a")]) == []


def test_a_parked_operation_is_asked_about_like_an_open_one() -> None:
    world = World()
    history = world.begun()
    dispatch = history[-1]
    history += [world.r.ended()]
    assert isinstance(dispatch, ToolDispatched)
    parked = world.r.recovery(
        dispatch, len(history), observation=Observation.UNREADABLE, reason="idempotency_key_expired"
    )
    history += [parked.reconciled, parked.decided]
    assert world.seen(history) == [("op-r-a", Overness.RUNNING)]


# What a person declares over (ADR 0016)


@pytest.mark.parametrize(
    ("liveness", "expected"),
    [
        (Liveness.COULD_NOT_LOOK, None),
        (Liveness.ALIVE, Overness.RUNNING),
        (Liveness.DEAD, None),
    ],
)
def test_what_is_declared_over_is_believed_only_where_it_could_not_be_looked(
    liveness: Liveness, expected: Overness | None
) -> None:
    world = World()
    history = [*world.begun(), world.r.ended()]
    history += [world.r.attestation("a", len(history), Statement.OVER).attested]
    world.owner.tell(world.theirs.incarnation, liveness)
    assert world.seen(history) == ([] if expected is None else [("op-r-a", expected)])


def test_an_operation_whose_lock_is_held_is_not_over_whatever_was_declared() -> None:
    world = World()
    history = [*world.begun(Life.SUPERVISED), world.r.ended()]
    history += [world.r.attestation("a", len(history), Statement.OVER).attested]
    assert world.seen(history) == []  # nobody has heard of it
    world.supervisor.prepare(OperationId("op-r-a"))
    assert world.seen(history) == [("op-r-a", Overness.RUNNING)]


def test_a_delivery_after_the_statement_was_not_meant_by_it() -> None:
    world = World()
    history = [*world.begun(), world.r.ended()]
    history += [world.r.attestation("a", len(history), Statement.OVER).attested]
    again = SessionOwnership(world.mine._owners, MemoryIncarnations(world.owner.host), lambda _: None)
    world.owner.tell(world.theirs.incarnation, Liveness.COULD_NOT_LOOK)
    world.owner.tell(again.incarnation, Liveness.COULD_NOT_LOOK)
    assert world.seen(history) == []
    history += [world.r.redelivery("a", incarnation_id=again.incarnation.incarnation_id).started]
    assert world.seen(history) == [("op-r-a", Overness.COULD_NOT_LOOK)]
    history += [world.r.attestation("a", len(history), Statement.OVER).attested]
    assert world.seen(history) == []


def test_a_job_that_was_left_running_can_be_declared_over() -> None:
    world = World()
    history = [*world.begun(), world.r.outcome("a"), world.r.left_running("a"), world.r.ended()]
    world.owner.tell(world.theirs.incarnation, Liveness.COULD_NOT_LOOK)
    assert world.seen(history) == [("op-r-a", Overness.COULD_NOT_LOOK)]
    history += [world.r.attestation("a", len(history), Statement.OVER).attested]
    assert world.seen(history) == []
