"""What the store in memory holds, and the rules that SQL enforces elsewhere: shared by its ports, guarded by one
lock.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ...domain.errors import StoreBehindAnchor, StoreDamaged, StoreFull, StoreNotAdopted, StoreUnavailable
from ...domain.events.catalogue import AFTER_TERMINAL
from ...domain.events.run import RunClaimed, RunEnded
from ...domain.events.session import RunAdmitted
from ...domain.identifiers import IncarnationId, RunId, SessionId
from ...domain.projections import TABLES, Column, Row
from ...domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, StoredRecord, digest_of
from ...domain.unique_ids import IdKind, UniqueId, ids_used_by
from ...ports.event_store import Commit, CommitAnswer, ConstraintBroken, DuplicateId, Fenced, Location, VersionConflict
from ...ports.incarnations import Incarnation
from ...ports.session_owners import Ownership
from ...ports.store_keeping import Trust

Key = tuple[Column, ...]


class Failure(StrEnum):
    """What can be made to go wrong, once, at the next call that could meet it."""

    UNAVAILABLE = "unavailable"
    """Writing: StoreUnavailable, nothing is written."""
    COMMIT_LOST = "commit_lost"
    """Writing: COMMIT fails and nothing became durable; the caller cannot know."""
    COMMIT_STORED = "commit_stored"
    """Writing: COMMIT fails although all became durable; the caller cannot know."""
    ANCHOR_NOT_RAISED = "anchor_not_raised"
    """Writing: all is durable, but the anchor could not be raised."""
    FULL = "full"
    """Writing: StoreFull, nothing is written."""
    DAMAGED = "damaged"
    """Writing: StoreDamaged, nothing is written."""
    UNREADABLE = "unreadable"
    """Reading: StoreUnavailable."""


@dataclass(slots=True)
class MemoryTables:
    """The store's content. Whoever touches it holds `lock`."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    records: list[StoredRecord] = field(default_factory=list)
    streams: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    used_ids: dict[UniqueId, int] = field(default_factory=dict)
    admissions: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    sealed_by: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    owners: dict[SessionId, Ownership] = field(default_factory=dict)
    incarnations: dict[IncarnationId, Incarnation] = field(default_factory=dict)
    projections: dict[str, dict[Key, dict[str, Column]]] = field(default_factory=lambda: {name: {} for name in TABLES})
    generation: int = 1
    trust: Trust = Trust.OK
    failures: list[Failure] = field(default_factory=list)
    closed: bool = False

    def copied(self) -> MemoryTables:
        """The same content, for a store of its own that cannot vouch for what it does not hold."""
        return MemoryTables(
            records=list(self.records),
            streams=defaultdict(list, {name: list(rows) for name, rows in self.streams.items()}),
            used_ids=dict(self.used_ids),
            admissions=dict(self.admissions),
            sealed_by=defaultdict(set, {name: set(seals) for name, seals in self.sealed_by.items()}),
            owners=dict(self.owners),
            incarnations=dict(self.incarnations),
            projections={
                name: {key: dict(row) for key, row in rows.items()} for name, rows in self.projections.items()
            },
            generation=self.generation,
            trust=Trust.COPIED,
        )

    def location(self, one: UniqueId, records_seen: int) -> Location | None:
        """Where an id was used among the first records."""
        row = self.used_ids.get(one)
        if row is None or row >= records_seen:
            return None
        return Location(self.records[row].stream, self.records[row].version)

    def why_not(self, commit: Commit) -> CommitAnswer | None:
        """The first reason why a commit does not fit, or None when it does."""
        ids = [one for sealed in commit.events for one in ids_used_by(sealed.event)]
        owns = self.owners.get(commit.guard.session_id) == Ownership(*commit.guard)
        return (
            self._used_twice(one for one in ids if one.kind is IdKind.EVENT)
            or (None if owns else Fenced(commit.guard.session_id, commit.guard.epoch))
            or self._version_conflict(commit)
            or self._used_twice(one for one in ids if one.kind is not IdKind.EVENT)
            or self._sealed(commit)
        )

    def keep(self, commit: Commit) -> None:
        """Add a commit that fits."""
        for sealed in commit.events:
            self._keep_event(sealed)
        for row in commit.rows:
            put(self.projections, row)

    def make_foreign(self, commit: Commit) -> None:
        """Let absence prove nothing in the runs that a commit admitted."""
        for sealed in commit.events:
            if isinstance(sealed.event, RunAdmitted):
                _, row = self.admissions[sealed.event.run_id]
                self.admissions[sealed.event.run_id] = (0, row)

    def _keep_event(self, sealed: SealedEvent) -> None:
        row = len(self.records)
        self.records.append(sealed.record)
        self.streams[sealed.stream].append(row)
        for one in ids_used_by(sealed.event):
            self.used_ids[one] = row
            if one.kind is IdKind.RUN:
                self.admissions[RunId(one.id)] = (self.generation, row)
        if sealed.event.topic in {RunEnded.topic, RunClaimed.topic}:
            self.sealed_by[sealed.stream].add(sealed.event.topic)

    def _used_twice(self, ids: Iterable[UniqueId]) -> DuplicateId | None:
        seen: set[UniqueId] = set()
        for one in ids:
            if one in seen or one in self.used_ids:
                return DuplicateId(one.kind.value, one.id)
            seen.add(one)
        return None

    def _version_conflict(self, commit: Commit) -> VersionConflict | ConstraintBroken | None:
        heads: dict[str, tuple[int, str]] = {}
        for sealed in commit.events:
            first = sealed.stream not in heads
            version, digest = self._head(sealed.stream) if first else heads[sealed.stream]
            if sealed.sequence != version + 1 and not first:
                return ConstraintBroken("a version is not the next one")
            if (sealed.sequence, sealed.previous_digest) != (version + 1, digest):
                return VersionConflict(sealed.stream)
            heads[sealed.stream] = (sealed.sequence, sealed.digest)
        return None

    def _head(self, stream: str) -> tuple[int, str]:
        rows = self.streams.get(stream)
        return (len(rows), digest_of(self.records[rows[-1]].state)) if rows else (0, FIRST_PREVIOUS_DIGEST)

    def _sealed(self, commit: Commit) -> ConstraintBroken | None:
        sealed_by = {sealed.stream: set(self.sealed_by.get(sealed.stream, ())) for sealed in commit.events}
        for sealed in commit.events:
            topic, seals = sealed.event.topic, sealed_by[sealed.stream]
            if RunClaimed.topic in seals or (seals and topic not in AFTER_TERMINAL):
                return ConstraintBroken(f"the stream {sealed.stream} is sealed")
            if topic in {RunEnded.topic, RunClaimed.topic}:
                seals.add(topic)
        return None


def put(projections: Mapping[str, dict[Key, dict[str, Column]]], row: Row) -> None:
    """Put a row in: columns that it does not name stay as they are."""
    table = TABLES[row.table]
    key = tuple(row.values[column] for column in table.key)
    present = projections[row.table].setdefault(key, dict.fromkeys(table.columns))
    present.update(row.values)


def meet(tables: MemoryTables, failure: Failure) -> bool:
    """Tell whether a failure was asked for, and use it up."""
    if failure not in tables.failures:
        return False
    tables.failures.remove(failure)
    return True


def require_readable(tables: MemoryTables) -> None:
    """Refuse to read a store that is closed, or that was told to fail."""
    if tables.closed:
        raise StoreUnavailable("the store was closed")
    if meet(tables, Failure.UNREADABLE):
        raise StoreUnavailable("the store could not be read")


def require_writable(tables: MemoryTables) -> None:
    """Refuse to write a store that is closed, cannot be trusted, or was told to fail."""
    if tables.closed:
        raise StoreUnavailable("the store was closed")
    if meet(tables, Failure.UNAVAILABLE):
        raise StoreUnavailable("the store could not be written")
    if meet(tables, Failure.FULL):
        raise StoreFull("there is no room left")
    if meet(tables, Failure.DAMAGED):
        raise StoreDamaged("the store is damaged")
    if tables.trust is Trust.COPIED:
        raise StoreNotAdopted("the store is a copy; nothing is written to it until a person adopts it")
    if tables.trust is not Trust.OK:
        raise StoreBehindAnchor(
            f"the store is distrusted ({tables.trust}); nothing is written until a person adopts it"
        )
