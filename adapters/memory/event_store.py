"""A store in memory: the same contracts and answers as a durable one, for tests and for judging without a store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...domain import canonical
from ...domain.errors import StoreUnavailable
from ...domain.identifiers import EventId, RunId
from ...domain.sealing import StoredRecord, digest_of
from ...domain.unique_ids import IdKind, UniqueId
from ...ports.event_store import Commit, CommitAnswer, EventReader, EventStore, Location, Standing, Stored
from ...ports.run_importer import RunImporter
from ...ports.session_owners import Ownership
from ...ports.store_keeping import StoreCondition, StoreKeeping, Trust
from .forgetting import MemoryForgetting
from .projections import MemoryProjections
from .session_owners import MemorySessionOwners
from .tables import Failure, MemoryTables, meet, require_readable, require_writable
from .views import MemoryViews

_LIMIT_MAX = 10_000


class MemoryStore(StoreKeeping):
    """A whole store in memory, by port; lost when it is dropped. Thread-safe.

    Attributes:
        events: the streams.
        owners: who may write which session.
        views: lists and pages.
        projections: rebuilding and comparing the views.
        forgetting: takes the content of sessions away.
    """

    def __init__(self, tables: MemoryTables | None = None, store_id: str | None = None) -> None:
        self._tables = MemoryTables() if tables is None else tables
        self._store_id = uuid.uuid4().hex if store_id is None else store_id
        self.adoptions: list[tuple[str, str, str]] = []
        self.events = MemoryEventStore(self._tables)
        self.owners = MemorySessionOwners(self._tables)
        self.views = MemoryViews(self._tables)
        self.projections = MemoryProjections(self._tables)
        self.forgetting = MemoryForgetting(self._tables)

    def fail_next(self, failure: Failure, times: int = 1) -> None:
        """Make the next calls that could meet a failure meet it.

        Args:
            failure: what goes wrong.
            times: how often, 1 or more.
        """
        with self._tables.lock:
            self._tables.failures.extend([failure] * times)

    def distrust(self, trust: Trust) -> None:
        """Make the store stand as it would after such a loss; `adopt` mends it."""
        with self._tables.lock:
            self._tables.trust = trust

    def copied(self) -> MemoryStore:
        """A store of its own with the same content, foreign until it is adopted."""
        with self._tables.lock:
            return MemoryStore(self._tables.copied(), self._store_id)

    def digest(self) -> str:
        """Over all events in their order; equal digests mean equal events."""
        with self._tables.lock:
            return canonical.sha256_hex("".join(digest_of(record.state) for record in self._tables.records).encode())

    def holds_all_of(self, other: MemoryStore) -> bool:
        """Tell whether it holds the events of another store of its id, in their order, and maybe more."""
        with self._tables.lock, other._tables.lock:
            kept = other._tables.records
            return self._store_id != other._store_id or self._tables.records[: len(kept)] == kept

    def size_bytes(self) -> int:
        """Of all events."""
        with self._tables.lock:
            return sum(len(record.state) for record in self._tables.records)

    def condition(self) -> StoreCondition:
        """See `StoreKeeping`."""
        with self._tables.lock:
            tables, events = self._tables, len(self._tables.records)
            return StoreCondition(tables.trust, tables.trust.value, self._store_id, tables.generation, events, events)

    def adopt(self, *, by: str, note: str, at: str) -> StoreCondition:
        """See `StoreKeeping`."""
        with self._tables.lock:
            self.adoptions.append((by, note, at))
            self._tables.generation += 1
            self._tables.trust = Trust.OK
        return self.condition()

    def streams(self, *, after: str = "", limit: int = 1000) -> Sequence[str]:
        """See `StoreKeeping`."""
        _require_limit(limit)
        with self._tables.lock:
            return sorted(name for name in self._tables.streams if name > after)[:limit]

    def faults(self) -> Sequence[str]:
        """See `StoreKeeping`; memory has no pages."""
        return ()

    def owned_sessions(self, *, after: str = "", limit: int = 1000) -> Sequence[Ownership]:
        """See `StoreKeeping`."""
        _require_limit(limit)
        with self._tables.lock:
            owned = [one for one in self._tables.owners.values() if one.incarnation_id and one.session_id > after]
        return sorted(owned)[:limit]

    def close(self) -> None:
        """Refuse further use; idempotent."""
        self.events.close()


class MemoryEventStore(EventStore, RunImporter):
    """The streams of a store in memory."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        """See `EventStore`."""
        if not commits:
            return ()
        with self._tables.lock:
            require_writable(self._tables)
            lost = meet(self._tables, Failure.COMMIT_LOST)
            unknown = meet(self._tables, Failure.COMMIT_STORED) or meet(self._tables, Failure.ANCHOR_NOT_RAISED)
            if lost:
                raise StoreUnavailable("it is not known whether the last commit was kept")
            answers = [self._keep(commit) for commit in commits]
        if unknown:
            raise StoreUnavailable("it is not known whether the last commit was kept")
        return answers

    def import_runs(self, commit: Commit) -> CommitAnswer:
        """See `RunImporter`."""
        with self._tables.lock:
            (answer,) = self.append([commit])
            if isinstance(answer, Stored):
                self._tables.make_foreign(commit)
            return answer

    @contextmanager
    def snapshot(self) -> Iterator[EventReader]:
        """See `EventStore`."""
        with self._tables.lock:
            require_readable(self._tables)
            reader = _MemoryReader(self._tables)
        yield reader

    def close(self) -> None:
        """See `EventStore`."""
        with self._tables.lock:
            self._tables.closed = True

    def _keep(self, commit: Commit) -> CommitAnswer:
        refusal = self._tables.why_not(commit)
        if refusal is not None:
            return refusal
        self._tables.keep(commit)
        return Stored()


class _MemoryReader(EventReader):
    """The first records of a store: those that were there when the view was opened."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._records_seen = len(tables.records)
        self._generation, self._trust = tables.generation, tables.trust

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        """See `EventReader`."""
        _require_limit(limit)
        with self._tables.lock:
            rows = self._tables.streams.get(stream, [])[max(after, 0) : max(after, 0) + limit]
            return [self._tables.records[row] for row in rows if row < self._records_seen]

    def last(self, stream: str) -> StoredRecord | None:
        """See `EventReader`."""
        with self._tables.lock:
            rows = self._tables.streams.get(stream, [])
            return next((self._tables.records[row] for row in reversed(rows) if row < self._records_seen), None)

    def locate(self, event_id: EventId) -> Location | None:
        """See `EventReader`."""
        with self._tables.lock:
            return self._tables.location(UniqueId(IdKind.EVENT, event_id), self._records_seen)

    def standing(self, run_id: RunId) -> Standing:
        """See `EventReader`."""
        with self._tables.lock:
            generation, row = self._tables.admissions.get(run_id, (None, 0))
        seen = generation if row < self._records_seen else None
        return Standing(seen, self._generation, self._trust.end_may_be_lost, self._trust.copied)


def _require_limit(limit: int) -> None:
    if not 1 <= limit <= _LIMIT_MAX:
        raise ValueError(f"limit must be 1 to {_LIMIT_MAX}, not {limit}")
