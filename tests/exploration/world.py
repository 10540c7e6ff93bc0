"""What the processes of one schedule share, what each of them has seen, and what really happened.

Every port of a process is a gate: a fiber stands before each commit, look, probe, effect and request. What a process
has been answered is folded into a number, its history: a process that was answered the same does the same, so two
states with equal stores and equal histories have the same future.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.workspace import MemoryWorkspaces
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.tool import ToolResponded
from safepoint.domain.identifiers import EventId, IncarnationId, OperationId, RunId, SessionId
from safepoint.domain.sealing import StoredRecord
from safepoint.ports.event_store import Commit, CommitAnswer, EventReader, EventStore, Location, Standing, Stored
from safepoint.ports.incarnations import HeldIncarnation, Incarnation, Incarnations, Liveness
from safepoint.ports.session_owners import Ownership, SessionOwners

from .fibers import Fiber, Threads, running

if TYPE_CHECKING:
    from .rules import Rules
    from .supervised import Slot

SESSION = SessionId("s")
WORKSPACE = "/nowhere"
LOCAL = frozenset({"begin", "checkpoint", "lock", "sleep"})
"""Points that nobody outside the process can see."""


@dataclass(frozen=True)
class Effect:
    """An effect in the outside world."""

    operation_id: OperationId
    tool: str


@dataclass
class Seen:
    """One process: whether it lives, and what it was answered so far.

    Attributes:
        history: all answers, in their order, as one number.
        looked: fibers that have just looked, so that another look of theirs is part of the same.
        told: what its deeds came to.
        busy: how many of its fibers still do something.
        forces: it takes sessions from the living, by command.
        saw: the workspace as it was seen last.
    """

    name: str
    alive: bool = True
    history: int = 0
    fibers: list[Fiber] = field(default_factory=list)
    looked: set[str] = field(default_factory=set)
    incarnations: list[IncarnationId] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    busy: int = 0
    forces: bool = False
    saw: object = None
    exited: bool = False

    def learns(self, *what: object) -> None:
        """Fold an answer into the history."""
        fiber = running()
        self.history = hash((self.history, None if fiber is None else fiber.name, what))


class World:
    """One store, one host, one outside world.

    Args:
        fine: stand before every read, not only before the first of several.

    Attributes:
        effects: what was done to the outside world, in order.
        at_work: operations whose implementation may still do something, by the process that it runs in.
        answered: requests that the provider answered: the run, and the last thing that it was shown.
        in_doubt: what becomes of the next commit: `lost` or `stored`, and nobody is told; None for a sound answer.
        broken: the rules that were broken, in words.
    """

    def __init__(self, *, store: MemoryStore | None = None, host: MemoryHost | None = None, fine: bool = False) -> None:
        self.threads = Threads()
        self.store = store or MemoryStore()
        self.host = host or MemoryHost()
        self.fine = fine
        self.processes: dict[str, Seen] = {}
        self.effects: list[Effect] = []
        self.at_work: dict[OperationId, str] = {}
        self.answered: Counter[tuple[RunId, EventId]] = Counter()
        self.broken: list[str] = []
        self.in_doubt: str | None = None
        self.answers: Counter[str] = Counter()
        self.slots: dict[OperationId, Slot] = {}
        self.rules: Rules | None = None
        self.workspaces = MemoryWorkspaces(CountingIds("w"))
        self.workspaces.make_folder(WORKSPACE)
        self.workspaces.ensure(WORKSPACE)

    def breaks(self, rule: str, detail: str) -> None:
        """A rule was broken."""
        self.broken.append(f"{rule}: {detail}")

    def process(self, name: str) -> Seen:
        """A process by its name, made when it is first named."""
        return self.processes.setdefault(name, Seen(name))

    def kill(self, name: str) -> None:
        """End a process by SIGKILL: its locks are free, and nothing that it was about to do happens."""
        self.processes[name].alive = False
        for incarnation_id in self.processes[name].incarnations:
            self.host.lives[incarnation_id].held = False
        self.at_work = {one: where for one, where in self.at_work.items() if where != name}
        self.threads.stop(name)

    def done(self, operation_id: OperationId) -> bool:
        """Whether the outside world shows the effect of an operation."""
        return any(effect.operation_id == operation_id for effect in self.effects)

    def exits(self, name: str) -> None:
        """A process has done what it wanted, and ends in order; its lock file stays."""
        seen = self.processes[name]
        seen.alive, seen.exited = False, True
        for incarnation_id in seen.incarnations:
            self.host.lives[incarnation_id].held = False
        self.at_work = {one: where for one, where in self.at_work.items() if where != name}

    def copy(self) -> World:
        """The same world again, for another order; nobody in it does anything."""
        assert all(fiber.ended for fiber in self.threads.fibers)
        other = World(store=copy_of(self.store), host=copy_of_host(self.host), fine=self.fine)
        other.processes = {name: replace(seen, fibers=[]) for name, seen in self.processes.items()}
        other.effects, other.at_work, other.answered = [*self.effects], {**self.at_work}, Counter(self.answered)
        other.workspaces = self.workspaces
        return other

    def exchange_workspace(self) -> None:
        """Another folder, with an identity of its own."""
        self.workspaces = MemoryWorkspaces(CountingIds("x"))
        self.workspaces.make_folder(WORKSPACE)
        self.workspaces.ensure(WORKSPACE)

    def stands(self, process: Seen, point: str) -> None:
        """Let the fiber stand before something that others can see."""
        fiber = running()
        if fiber is None:
            return
        process.looked.discard(fiber.name)
        fiber.at(point)

    def looks(self, process: Seen) -> None:
        """Let the fiber stand before a read; reads that follow at once are one look, unless the world is fine."""
        fiber = running()
        if fiber is None:
            return
        if self.fine or fiber.name not in process.looked:
            fiber.at("look")
            process.looked.add(fiber.name)

    def key(self) -> int:
        """A number for this state: equal for states that have the same future."""
        tables = self.store.events._tables
        streams = tuple((name, len(rows), tables.records[rows[-1]].state) for name, rows in tables.streams.items())
        lives = tuple(
            (one.name, one.history if one.alive else one.exited and tuple(one.told)) for one in self.processes.values()
        )
        standing = tuple(sorted((fiber.process, fiber.name, fiber.point) for fiber in self.threads.standing()))
        return hash(
            (
                frozenset(streams),
                frozenset(tables.owners.items()),
                frozenset(Counter(self.effects).items()),
                frozenset(self.answered.items()),
                frozenset(self.at_work.items()),
                lives,
                repr(self.workspaces.observe(WORKSPACE)),
                standing,
            )
        )


def copy_of(store: MemoryStore) -> MemoryStore:
    """A store with the same content."""
    other, tables = MemoryStore(), store.events._tables
    into = other.events._tables
    into.records.extend(tables.records)
    for stream, rows in tables.streams.items():
        into.streams[stream] = [*rows]
    into.used_ids.update(tables.used_ids)
    into.admissions.update(tables.admissions)
    for stream, topics in tables.sealed_by.items():
        into.sealed_by[stream] = {*topics}
    into.owners.update(tables.owners)
    into.incarnations.update(tables.incarnations)
    for name, rows_of_table in tables.projections.items():
        into.projections[name] = {key: dict(row) for key, row in rows_of_table.items()}
    return other


def copy_of_host(host: MemoryHost) -> MemoryHost:
    """A host with the same lives; all of them are over."""
    assert not any(life.held for life in host.lives.values())
    return MemoryHost(lives=dict(host.lives))


class GatedEvents(EventStore):
    """The streams as one process reaches them."""

    def __init__(self, world: World, process: Seen) -> None:
        self._world = world
        self._process = process

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        topics = ", ".join(sealed.event.topic for commit in commits for sealed in commit.events)
        self._world.stands(self._process, f"commit {topics}")
        owners = dict(self._world.store.events._tables.owners)
        doubt, self._world.in_doubt = self._world.in_doubt, None
        if doubt == "lost":
            raise self._doubtful()
        answers = self._world.store.events.append(commits)
        for commit, answer in zip(commits, answers, strict=True):
            self._world.answers[type(answer).__name__] += 1
            if isinstance(answer, Stored) and self._world.rules is not None:
                self._world.rules.committed(self._process, commit, owners)
            for sealed in commit.events:
                if isinstance(sealed.event, ToolResponded) and sealed.event.operation_id is not None:
                    self._returned(sealed.event.operation_id)
        if doubt == "stored":
            raise self._doubtful()
        self._process.learns(*answers)
        return answers

    def _doubtful(self) -> StoreUnavailable:
        self._process.learns("in doubt")
        return StoreUnavailable("it is not known whether the last commit was kept")

    def _returned(self, operation_id: OperationId) -> None:
        """T2 was tried: nothing of the operation is left in this process."""
        if self._world.at_work.get(operation_id) == self._process.name:
            del self._world.at_work[operation_id]

    @contextmanager
    def _look(self) -> Iterator[EventReader]:
        self._world.looks(self._process)
        with self._world.store.events.snapshot() as reader:
            yield _SeenReader(reader, self._process)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        return self._look()

    def close(self) -> None:
        """The world is not closed."""


class _SeenReader(EventReader):
    def __init__(self, inner: EventReader, process: Seen) -> None:
        self._inner = inner
        self._process = process

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        rows = self._inner.read(stream, after=after, limit=limit)
        self._process.learns(stream, after, len(rows), rows[-1].state if rows else None)
        return rows

    def last(self, stream: str) -> StoredRecord | None:
        row = self._inner.last(stream)
        self._process.learns(stream, row)
        return row

    def locate(self, event_id: EventId) -> Location | None:
        where = self._inner.locate(event_id)
        self._process.learns(event_id, where)
        return where

    def standing(self, run_id: RunId) -> Standing:
        standing = self._inner.standing(run_id)
        self._process.learns(run_id, standing)
        return standing


class GatedOwners(SessionOwners):
    """The control rows as one process reaches them."""

    def __init__(self, world: World, process: Seen) -> None:
        self._world = world
        self._process = process
        self._owners = world.store.owners

    def owner(self, session_id: SessionId) -> Ownership | None:
        self._world.looks(self._process)
        row = self._owners.owner(session_id)
        self._process.learns(row)
        return row

    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        self._world.stands(self._process, "take")
        before = self._owners.owner(session_id)
        taken = self._owners.take(session_id, incarnation_id, seen)
        self._process.learns(taken)
        if taken is not None and self._world.rules is not None:
            self._world.rules.taken(self._process, before)
        return taken

    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        self._world.stands(self._process, "release")
        released = self._owners.release(session_id, incarnation_id, epoch)
        self._process.learns(released)
        return released

    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        return [self.take(row.session_id, incarnation_id, row) for row in seen]

    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        return [
            row.incarnation_id is not None and self.release(row.session_id, row.incarnation_id, row.epoch)
            for row in owned
        ]

    def register(self, incarnation: Incarnation) -> None:
        """Nobody looks at what is registered before it owns something."""
        self._owners.register(incarnation)

    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        self._world.looks(self._process)
        facts = self._owners.incarnation(incarnation_id)
        self._process.learns(facts is None)
        return facts


class GatedIncarnations(Incarnations):
    """Lives as one process begins and observes them."""

    def __init__(self, world: World, process: Seen) -> None:
        self._world = world
        self._process = process
        self._inner = MemoryIncarnations(world.host)

    def enter(self) -> HeldIncarnation:
        self._world.host.numbers = itertools.count(100 * (1 + [*self._world.processes].index(self._process.name)))
        held = self._inner.enter()
        self._process.incarnations.append(held.incarnation.incarnation_id)
        return held

    def probe(self, incarnation: Incarnation) -> Liveness:
        self._world.looks(self._process)
        seen = self._inner.probe(incarnation)
        self._process.learns(seen)
        return seen

    def end(self, incarnation: Incarnation, timeout_seconds: float) -> Liveness:
        """End the process that lives it, as by SIGKILL."""
        self._world.stands(self._process, "end")
        for name, process in self._world.processes.items():
            if incarnation.incarnation_id in process.incarnations and process.alive:
                self._world.kill(name)
        self._process.learns("ended")
        return self.probe(incarnation)
