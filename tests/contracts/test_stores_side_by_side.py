"""Random groups of commits on a store in memory and on one in SQLite: fitting ones, and ones that roll back alone.

Whatever a group is made of, both answer alike commit by commit, and hold the same bytes, rows, ids and owners.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.domain.errors import StoreError
from safepoint.domain.events.event import Event
from safepoint.domain.projections import TABLES, Column
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.domain.unsealing import unseal
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.event_store import Commit, CommitAnswer, ConstraintBroken, Damaged, OwnerGuard, Stored

NAMES = ("one", "two")
RUNS = ("a", "b")
CALLS = ("x", "y")
INSTANTS = ("store.begin", "store.statement:1", "store.statement:2", "store.before_commit")
HOW = (*["fits"] * 9, "was overtaken", "of a stale owner", "again")
Make = Callable[[RecordedSession, str, str], tuple[Event, ...]]
EVENTS: dict[str, Make] = {
    "open": lambda one, run, call: one.opened(run),
    "say": lambda one, run, call: (one.text("said", run),),
    "call": lambda one, run, call: (one.called(call, run),),
    "dispatch": lambda one, run, call: (one.dispatched(call, run),),
    "call and dispatch": lambda one, run, call: (one.called(call, run), one.dispatched(call, run)),
    "answer": lambda one, run, call: (one.responded(call, run),),
    "recover": lambda one, run, call: one.recovery_of(call, run),
    "ask": lambda one, run, call: (one.asked(call, run),),
    "decide": lambda one, run, call: (one.decided(call, run),),
    "end": lambda one, run, call: (one.ended(run),),
    "end and go on": lambda one, run, call: (one.ended(run), one.text("late", run)),
    "claim": lambda one, run, call: (one.claimed("claim", run),),
    "say, and dispatch again": lambda one, run, call: (one.text("half", run), one.dispatched(call, run)),
    "watch": lambda one, run, call: (one.watched(call, run_name=run),),
}
GROUPS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(sorted(EVENTS)),
        st.sampled_from(RUNS),
        st.sampled_from(CALLS),
        st.sampled_from(HOW),
    ),
    min_size=1,
    max_size=3,
)


def meaning(answer: CommitAnswer) -> object:
    """What an answer says to a program; the sentence of a constraint is each store's own."""
    return type(answer) if isinstance(answer, ConstraintBroken | Damaged) else answer


class Stores(RuleBasedStateMachine):
    """Two sessions, written through both stores."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="safepoint-")
        self.path = Path(self.folder.name) / "store.sqlite"
        self.dying = ""
        self.memory = MemoryStore()
        self.sqlite = open_store(self.path, on_point=self._hit)
        self.sessions = {name: RecordedSession(name, f"life-{name}") for name in NAMES}
        self.kept: list[Commit] = []
        self.made = 0

    @property
    def stores(self) -> tuple[MemoryStore | SqliteStore, ...]:
        return (self.memory, self.sqlite)

    @initialize()
    def own(self) -> None:
        for store in self.stores:
            for one in self.sessions.values():
                one.own(store.owners)
        self.append([(name, "open", run, "x", "fits") for run in RUNS for name in NAMES])

    @rule(group=GROUPS)
    def append(self, group: list[tuple[str, str, str, str, str]]) -> None:
        """A group in one call; each commit is made as if those before it were kept."""
        commits = [commit for wanted in group if (commit := self._commit(*wanted)) is not None]
        memory, sqlite = (list(store.events.append(commits)) for store in self.stores)
        assert list(map(meaning, memory)) == list(map(meaning, sqlite))
        self.kept += [commit for commit, answer in zip(commits, memory, strict=True) if isinstance(answer, Stored)]
        self._look_again()

    @precondition(lambda self: self.kept)
    @rule(instant=st.sampled_from(INSTANTS), wanted=GROUPS)
    def connection_dies(self, instant: str, wanted: list[tuple[str, str, str, str, str]]) -> None:
        """Nothing of the group is kept; the same group afterwards is answered as if nothing had been."""
        commits = [commit for one in wanted if (commit := self._commit(*one)) is not None]
        self.memory.fail_next(Failure.UNAVAILABLE)
        self.dying = instant
        said = []
        for store in self.stores:
            try:
                store.events.append(commits)
                said.append("answered")
            except StoreError as error:
                said.append(error.code.value)
        died, self.dying = not self.dying, ""
        if died or said[1] != "answered":
            assert said == ["store_unavailable"] * 2
        else:  # every commit was refused before the instant came
            assert said == ["store_unavailable", "answered"]
        self._look_again()

    @rule(name=st.sampled_from(NAMES))
    def take_over(self, name: str) -> None:
        """Another life takes a session from its owner."""
        one = self.sessions[name]
        self.made += 1
        successor = RecordedSession(name, f"life-{name}-{self.made}")
        for store in self.stores:
            successor.own(store.owners)
            present = store.owners.owner(one.session_id)
            assert present is not None
            assert present.incarnation_id is not None
            successor.guard = OwnerGuard(present.session_id, present.incarnation_id, present.epoch)
        successor._ids = one._ids
        self.sessions[name] = successor
        self._look_again()

    @rule()
    def adopt(self) -> None:
        """What is there becomes foreign."""
        for store in self.stores:
            store.adopt(by="somebody", note="because", at=NOON)

    @rule()
    def rebuild(self) -> None:
        """Dropping the views and making them again changes nothing."""
        before = self._rows_of_sqlite()
        reports = [store.projections.rebuild() for store in self.stores]
        assert reports[0]._replace(rows=0) == reports[1]._replace(rows=0)
        assert self._rows_of_sqlite() == before

    @rule()
    def reopen(self) -> None:
        """The durable one is closed, and opened by somebody else."""
        self.sqlite.close()
        self.sqlite = open_store(self.path, on_point=self._hit)

    @invariant()
    def both_hold_the_same(self) -> None:
        held = []
        for store in self.stores:
            names = list(store.streams())
            with store.events.snapshot() as reader:
                records = [reader.read(name, limit=10_000) for name in names]
                standings = [reader.standing(one.run_id(run)) for one in self.sessions.values() for run in RUNS]
                places = [reader.locate(sealed.event.event_id) for commit in self.kept for sealed in commit.events]
            owners = [store.owners.owner(one.session_id) for one in self.sessions.values()]
            condition = store.condition()
            held.append((names, records, standings, places, owners, condition.events, condition.generation))
        assert held[0] == held[1]
        assert self._rows_of_memory() == self._rows_of_sqlite()

    def teardown(self) -> None:
        try:
            for store in self.stores:
                assert list(store.faults()) == []
                assert list(store.projections.differences()) == []
        finally:
            self.sqlite.close()
            self.folder.cleanup()

    def _commit(self, name: str, what: str, run: str, call: str, how: str) -> Commit | None:
        one = self.sessions[name]
        if how == "again":
            return self.kept[-1] if self.kept else None
        if what == "claim" and f"run:{one.run_id(run)}" not in one._heads:
            return None
        if how == "was overtaken":
            one.commit(one.text("never handed over", run))  # so that the version after it is a gap
        guard = one.guard._replace(epoch=one.guard.epoch + 7) if how == "of a stale owner" else None
        return one.commit(*EVENTS[what](one, run, call), guard=guard)

    def _look_again(self) -> None:
        """Whoever makes commits knows what is stored, whatever was refused."""
        with self.memory.events.snapshot() as reader:
            for one in self.sessions.values():
                one._heads.clear()
                for stream in (f"session:{one.session_id}", *(f"run:{one.run_id(run)}" for run in RUNS)):
                    previous = FIRST_PREVIOUS_DIGEST
                    for row in reader.read(stream, limit=10_000):
                        previous = unseal(row, row.version, previous).digest
                        one._heads[stream] = (row.version, previous)

    def _rows_of_memory(self) -> dict[str, list[tuple[Column, ...]]]:
        rows = self.memory._tables.projections
        return {name: sorted((tuple(row.values()) for row in rows[name].values()), key=repr) for name in TABLES}

    def _rows_of_sqlite(self) -> dict[str, list[tuple[Column, ...]]]:
        with closing(sqlite3.connect(self.path)) as raw:
            found = {name: raw.execute(f"SELECT {', '.join(TABLES[name].columns)} FROM {name}") for name in TABLES}
            return {name: sorted(rows, key=repr) for name, rows in found.items()}

    def _hit(self, point: str) -> None:
        if point == self.dying:
            self.dying = ""
            assert self.sqlite._writer is not None
            self.sqlite._writer._connection.close()


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
