"""Ledgers over one store, in memory or in SQLite, whose writing can be held back, interposed and made to fail."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.application.ledger import Ledger, Receipt
from safepoint.domain.commands import AnyCommand
from safepoint.domain.errors import StoreFull, StoreUnavailable, WriteRefused
from safepoint.domain.events.event import Event
from safepoint.domain.identifiers import IncarnationId, SessionId
from safepoint.domain.projections import TABLES, Column
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent
from safepoint.domain.unsealing import unseal
from safepoint.ports.event_store import Commit, CommitAnswer, Damaged, EventReader, EventStore
from safepoint.ports.incarnations import Incarnation

from ..domain.facts import Facts

STORES = ("memory", "sqlite")
DEADLOCK_SECONDS = 30.0


class WatchedEvents(EventStore):
    """A store's events; tells what is written together, and may be held, interposed or made to fail on the way.

    Attributes:
        groups: the commits of each call that came through.
        snapshots: how many views were opened.
    """

    def __init__(self, events: EventStore) -> None:
        self._events = events
        self.groups: list[int] = []
        self.snapshots = 0
        self._before: list[tuple[int, Callable[[], object]]] = []
        self._held: threading.Event | None = None
        self._damaged: Damaged | None = None
        self._entered = threading.Event()

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        self._entered.set()
        if self._held is not None:
            held, self._held = self._held, None
            assert held.wait(DEADLOCK_SECONDS)
        due = [act for skip, act in self._before if skip == 0]
        self._before = [(skip - 1, act) for skip, act in self._before if skip > 0]
        for act in due:
            act()
        if self._damaged is not None:
            answer, self._damaged = self._damaged, None
            return [answer, *self._events.append(commits[1:])]
        answers = self._events.append(commits)
        self.groups.append(len(commits))
        return answers

    def snapshot(self) -> AbstractContextManager[EventReader]:
        self.snapshots += 1
        return self._events.snapshot()

    def close(self) -> None:
        self._events.close()

    def before_append(self, act: Callable[[], object], *, after: int = 0) -> None:
        """Do something when the ledger has decided and the store has not written yet, some appends from now."""
        self._before.append((after, act))

    def damage_next(self) -> None:
        """Let the first commit of the next append touch what is damaged."""
        self._damaged = Damaged("a page is not what it should be")

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold the next append until the block ends."""
        self._entered.clear()
        held = self._held = threading.Event()
        try:
            yield
        finally:
            held.set()

    def wait_until_held(self) -> None:
        assert self._entered.wait(DEADLOCK_SECONDS)


class World:
    """One store, with ledgers over it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self._points: dict[str, list[Exception]] = {}
        self._killing: list[str] = []
        self._path = folder / "store.sqlite"
        self.store: MemoryStore | SqliteStore
        if kind == "memory":
            self.store = MemoryStore()
        else:
            self.store = open_store(self._path, on_point=self._hit)
        self.events = WatchedEvents(self.store.events)
        self.owners = self.store.owners
        self.ledger = Ledger(self.events, self.owners)

    def close(self) -> None:
        self.store.close()

    def another_ledger(self, *, cached_streams_max: int = 1024) -> Ledger:
        """A ledger that knows nothing of what others have written, and that is not watched."""
        return Ledger(self.store.events, self.owners, cached_streams_max=cached_streams_max)

    def own(self, facts: Facts) -> Facts:
        """Make the owner that the facts name the present one; they carry its epoch from now on."""
        me = incarnation(facts.incarnation_id)
        self.owners.register(me)
        seen = self.owners.owner(facts.session_id)
        if seen is not None and seen.incarnation_id == facts.incarnation_id:
            facts.epoch = seen.epoch
            return facts
        taken = self.owners.take(facts.session_id, facts.incarnation_id, seen)
        assert taken is not None
        facts.epoch = taken.epoch
        return facts

    def facts(self, run: str = "r", *, session: str = "s", incarnation: str = "i1", maker: str = "") -> Facts:
        """The facts of a run whose session is owned."""
        return self.own(Facts(run, session=session, incarnation=incarnation, maker=maker))

    def opened(self, run: str = "r", *calls: str, session: str = "s") -> Facts:
        """A run that was opened and has recorded a step with these calls."""
        r = self.facts(run, session=session)
        self.ledger.execute(r.open_run())
        if calls:
            self.ledger.execute(r.record(r.step(*calls)))
        return r

    def stream(self, name: str) -> list[SealedEvent]:
        """All events of a stream, verified."""
        found: list[SealedEvent] = []
        with self.store.events.snapshot() as reader:
            while rows := reader.read(name, after=len(found), limit=1000):
                for row in rows:
                    previous = found[-1].digest if found else FIRST_PREVIOUS_DIGEST
                    found.append(unseal(row, len(found) + 1, previous))
        return found

    def topics(self, name: str = "run:r") -> list[str]:
        return [one.event.topic for one in self.stream(name)]

    def consistent(self) -> bool:
        """All chains verify, and the projections are what the events make."""
        for name in self.store.streams():
            self.stream(name)
        return list(self.store.projections.differences()) == []

    # ---- failures --------------------------------------------------------------------------------------------------

    def fail_commit(self, *, stored: bool) -> None:
        """Make the next COMMIT fail; whether all became durable all the same, the caller cannot know."""
        if isinstance(self.store, MemoryStore):
            self.store.fail_next(Failure.COMMIT_STORED if stored else Failure.COMMIT_LOST)
        else:
            point = "store.after_commit" if stored else "store.before_commit"
            self._points.setdefault(point, []).append(StoreUnavailable("it is not known"))

    def fill_up(self) -> None:
        """Leave no room for the next transaction."""
        if isinstance(self.store, MemoryStore):
            self.store.fail_next(Failure.FULL)
        else:
            self._points.setdefault("store.statement:1", []).append(StoreFull("no room"))

    def kill_connection(self, instant: str) -> None:
        """Take the connection away in the middle of the next transaction, as an error of the disk does."""
        if isinstance(self.store, MemoryStore):
            self.store.fail_next(Failure.UNAVAILABLE)
        else:
            self._killing.append(instant)

    def content(self) -> object:
        """All that the store holds, as both kinds of store hold it: records in order, rows, owners, and the count."""
        names = list(self.store.streams())
        with self.store.events.snapshot() as reader:
            records = {name: reader.read(name, limit=10_000) for name in names}
        owners = {name.removeprefix("session:"): None for name in names if name.startswith("session:")}
        owned = {name: self.owners.owner(SessionId(name)) for name in owners}
        return records, self._rows(), owned, self.store.condition().events

    def _rows(self) -> dict[str, list[tuple[Column, ...]]]:
        if isinstance(self.store, MemoryStore):
            rows = self.store._tables.projections
            return {name: sorted((tuple(row.values()) for row in rows[name].values()), key=repr) for name in TABLES}
        with closing(sqlite3.connect(self._path)) as raw:
            found = {name: raw.execute(f"SELECT {', '.join(TABLES[name].columns)} FROM {name}") for name in TABLES}
            return {name: sorted(rows, key=repr) for name, rows in found.items()}

    def _hit(self, point: str) -> None:
        if self._killing and point == self._killing[0]:
            self._killing.pop()
            assert isinstance(self.store, SqliteStore)
            assert self.store._writer is not None
            self.store._writer._connection.close()
        if planned := self._points.get(point):
            raise planned.pop(0)


def incarnation(name: IncarnationId) -> Incarnation:
    """The facts of a life that nobody lives."""
    return Incarnation(incarnation_id=name, pid=1, process_start_time=1, host="h", boot_id="b", pid_namespace="n")


def refusal(ledger: Ledger, command: AnyCommand) -> WriteRefused:
    """The refusal of a command that must be refused."""
    try:
        ledger.execute(command)
    except WriteRefused as refused:
        return refused
    raise AssertionError("it was accepted")


def events_of(receipt: Receipt) -> tuple[Event, ...]:
    """The events of a receipt without their seals."""
    return tuple(sealed.event for sealed in receipt.events)


class Caller(threading.Thread):
    """Executes one command in a thread of its own, and keeps what comes of it."""

    def __init__(self, ledger: Ledger, command: AnyCommand) -> None:
        super().__init__()
        self._ledger, self._command = ledger, command
        self.receipt: Receipt | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.receipt = self._ledger.execute(self._command)
        except Exception as error:  # noqa: BLE001 (what a caller gets is what the tests look at)
            self.error = error

    def done(self) -> Caller:
        self.join(DEADLOCK_SECONDS)
        assert not self.is_alive()
        return self

    @property
    def code(self) -> str | None:
        """The code of its refusal, None where it was not refused."""
        return self.error.code.value if isinstance(self.error, WriteRefused) else None


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for another thread; one that never comes fails the test."""
    for _ in range(int(DEADLOCK_SECONDS * 1000)):
        if condition():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it did not come to that")


def together(world: World, *commands: AnyCommand) -> list[Caller]:
    """Let commands meet in one group: in this order they wait while an earlier caller writes another session."""
    ledger = world.ledger
    number = sum(name.startswith("run:held") for name in world.store.streams())
    first = world.facts(f"held{number}", session=f"held{number}")
    with world.events.holding():
        holder = Caller(ledger, first.open_run())
        world.events.wait_until_held()
        callers = []
        for command in commands:
            callers.append(Caller(ledger, command))
            wait_until(lambda: len(ledger._waiting) == len(callers))
    holder.done()
    return [caller.done() for caller in callers]
