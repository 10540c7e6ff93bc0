"""What others see of a session while it is written: what is durable, and nothing that moves on. SPEC section 7."""

from __future__ import annotations

import threading

import pytest

from safepoint.domain.commands import AnyCommand
from safepoint.domain.errors import StoreFull
from safepoint.domain.identifiers import RunId
from safepoint.domain.operation.state import Phase, operation_of_call
from safepoint.domain.run.state import Run

from .ledger_world import DEADLOCK_SECONDS, World, refusal, together

RUN = RunId("r")


class Reader(threading.Thread):
    """Reads the state of a run in a thread of its own."""

    def __init__(self, world: World, run: str = "r") -> None:
        super().__init__(daemon=True)
        self._world, self._run = world, RunId(run)
        self.seen: Run | None = None

    def run(self) -> None:
        self.seen = self._world.ledger.run(self._run)

    def sequence(self) -> int:
        self.join(DEADLOCK_SECONDS)
        assert self.seen is not None
        return self.seen.sequence


def while_it_is_written(world: World, command: AnyCommand, *readers: Reader, fails: bool = False) -> None:
    """Execute a command, and start the readers when it is decided and not written yet."""

    def start() -> None:
        for reader in readers:
            reader.start()
        if fails:
            world.fill_up()

    world.events.before_append(start)
    if not fails:
        world.ledger.execute(command)
        return
    with pytest.raises(StoreFull):
        world.ledger.execute(command)


def test_whoever_reads_a_run_that_is_being_written_sees_it_when_that_is_durable(world: World) -> None:
    r = world.opened("r", "a")
    reader = Reader(world)
    while_it_is_written(world, r.prepare(r.dispatch("a")), reader)
    assert reader.sequence() == 5


def test_whoever_reads_a_run_that_could_not_be_written_sees_what_is_durable(world: World) -> None:
    r = world.opened("r", "a")
    reader = Reader(world)
    while_it_is_written(world, r.prepare(r.dispatch("a")), reader, fails=True)
    assert reader.sequence() == 4
    assert world.ledger.execute(r.prepare(r.dispatch("a"))).first


def test_whoever_reads_another_session_does_not_wait_for_a_commit(world: World) -> None:
    r, _ = world.opened("r", "a"), world.opened("q", session="t")
    reader = Reader(world, "q")
    seen: list[int] = []

    def read() -> None:
        reader.start()
        seen.append(reader.sequence())

    world.events.before_append(read)
    world.ledger.execute(r.prepare(r.dispatch("a")))
    assert seen == [2]


def test_a_state_that_somebody_has_does_not_move_with_the_run(world: World) -> None:
    r = world.opened("r", "a", "b")
    before = world.ledger.run(RUN)
    world.ledger.execute(r.prepare(r.dispatch("a")))
    dispatched = world.ledger.run(RUN)
    world.ledger.execute(r.commit(r.outcome("a")))
    world.ledger.execute(r.prepare(r.dispatch("b")))
    phases = []
    for run in (before, dispatched, world.ledger.run(RUN)):
        operations = [operation_of_call(run, call) for call in "ab"]
        phases.append((run.sequence, [one.phase for one in operations if one is not None]))
    assert phases == [
        (5, [Phase.CALLED, Phase.CALLED]),
        (6, [Phase.DISPATCHED, Phase.CALLED]),
        (8, [Phase.SETTLED, Phase.DISPATCHED]),
    ]


def test_a_run_is_copied_once_a_commit_however_many_looked_and_never_where_nobody_did(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[int] = []
    copy = Run.copy

    def counted(run: Run) -> Run:
        copies.append(run.sequence)
        return copy(run)

    monkeypatch.setattr(Run, "copy", counted)
    r = world.opened("r", "a", "b")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    assert copies == []
    assert world.ledger.run(RUN) is world.ledger.run(RUN)
    assert copies == []
    world.ledger.execute(r.commit(r.outcome("a")))
    world.ledger.execute(r.prepare(r.dispatch("b")))
    assert copies == [6]


def test_what_was_refused_half_way_leaves_no_trace_beside_what_its_group_wrote(world: World) -> None:
    """The second fact of a command shows that it cannot stand, when the first was taken in already."""
    r = world.opened("r", "a")
    one = r.user("x", steering=True)
    twice = r.append(one, one.model_copy(update={"text": "y"}))
    before, after = r.append(r.user("1", steering=True)), r.append(r.user("2", steering=True))
    callers = together(world, before, twice, after, r.prepare(r.dispatch("a")))
    assert [caller.code for caller in callers] == [None, "duplicate_event_id", None, None]
    assert world.topics()[-3:] == ["message.user.v1", "message.user.v1", "tool.dispatched.v1"]
    assert world.ledger.run(RUN).sequence == len(world.stream("run:r")) == 7
    assert world.consistent()


def test_a_refusal_leaves_the_state_where_it_was(world: World) -> None:
    r = world.opened("r", "a")
    dispatch = r.dispatch("a")
    world.ledger.execute(r.prepare(dispatch))
    snapshots = world.events.snapshots
    assert refusal(world.ledger, r.refuse(r.refusal("a"))).code == "transition_shape_conflict"
    assert world.ledger.run(RUN).sequence == 5
    assert world.events.snapshots == snapshots + 1  # whether it was a retry was looked up, and nothing else
