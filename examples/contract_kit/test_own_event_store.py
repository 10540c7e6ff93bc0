"""An event store of one's own, in one file that lines are added to, and the proof that it keeps the port's contract.

    python -m pytest examples/contract_kit/test_own_event_store.py

It is for one process; nothing here but the file survives.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.catalogue import AFTER_TERMINAL
from safepoint.domain.events.run import RunClaimed, RunEnded
from safepoint.domain.identifiers import EventId, IncarnationId, RunId, SessionId
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, StoredRecord
from safepoint.domain.unique_ids import IdKind, UniqueId, ids_used_by
from safepoint.domain.unsealing import unseal
from safepoint.ports.contract_kit.event_store import EventStoreContract
from safepoint.ports.contract_kit.session_owners import SessionOwnersContract
from safepoint.ports.event_store import (
    Commit,
    CommitAnswer,
    ConstraintBroken,
    DuplicateId,
    EventReader,
    EventStore,
    Fenced,
    Location,
    Standing,
    Stored,
    VersionConflict,
)
from safepoint.ports.incarnations import Incarnation
from safepoint.ports.session_owners import Ownership, SessionOwners, require_few


class Journal:
    """The file, and what its lines say; whoever touches it holds `lock`."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self.events: list[SealedEvent] = []
        self.streams: dict[str, list[int]] = {}
        self.used: dict[UniqueId, int] = {}
        self.owners: dict[SessionId, Ownership] = {}
        self.lives: dict[IncarnationId, Incarnation] = {}
        self._file = path.open("a+b")
        self._file.seek(0)
        whole, end, _ = self._file.read().rpartition(b"\n")
        self._file.truncate(len(whole + end))  # a line without its end was never answered for
        for line in whole.splitlines():
            self._read(json.loads(line))

    def write(self, **line: object) -> None:
        """Make a line durable. After a failure nobody knows what the file holds, and nothing more is written."""
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            self.close()
            raise StoreUnavailable("it is not known whether the last line was kept") from error

    def require_open(self) -> None:
        """Refuse to answer from a file that was closed."""
        if self._file.closed:
            raise StoreUnavailable("the store was closed")

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def head(self, stream: str) -> tuple[int, str]:
        """The newest version of a stream, and the digest that the next event is sealed after."""
        rows = self.streams.get(stream)
        return (len(rows), self.events[rows[-1]].digest) if rows else (0, FIRST_PREVIOUS_DIGEST)

    def add(self, sealed: SealedEvent) -> None:
        """Take an event into what is known."""
        self.used.update(dict.fromkeys(ids_used_by(sealed.event), len(self.events)))
        self.streams.setdefault(sealed.stream, []).append(len(self.events))
        self.events.append(sealed)

    def _read(self, line: dict[str, list[Any]]) -> None:
        for stream, version, topic, state in line.get("events", []):
            self.add(unseal(StoredRecord(stream, version, topic, state.encode()), version, self.head(stream)[1]))
        for session_id, incarnation_id, epoch in line.get("owners", []):
            self.owners[session_id] = Ownership(session_id, incarnation_id, epoch)
        for facts in line.get("lives", []):
            life = Incarnation.model_validate(facts)
            self.lives[life.incarnation_id] = life


class JournalStore(EventStore):
    """Keeps all commits of a call in one line: it is there whole, or not at all."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        """See `EventStore`."""
        journal = self._journal
        with journal.lock:
            journal.require_open()
            before = len(journal.events)
            answers = [self._keep(commit) for commit in commits]
            kept = [(one.stream, one.sequence, one.event.topic, one.state.decode()) for one in journal.events[before:]]
            if kept:
                journal.write(events=kept)
            return answers

    @contextmanager
    def snapshot(self) -> Generator[EventReader, None, None]:
        """See `EventStore`."""
        with self._journal.lock:
            self._journal.require_open()
            reader = JournalReader(self._journal, len(self._journal.events))
        yield reader

    def close(self) -> None:
        """See `EventStore`."""
        with self._journal.lock:
            self._journal.close()

    def _keep(self, commit: Commit) -> CommitAnswer:
        refusal = self._why_not(commit)
        if refusal is not None:
            return refusal
        for sealed in commit.events:
            self._journal.add(sealed)
        return Stored()

    def _why_not(self, commit: Commit) -> CommitAnswer | None:
        """The first reason in the order that the port gives."""
        ids = [one for sealed in commit.events for one in ids_used_by(sealed.event)]
        owns = self._journal.owners.get(commit.guard.session_id) == Ownership(*commit.guard)
        return (
            self._used_twice([one for one in ids if one.kind is IdKind.EVENT])
            or (None if owns else Fenced(commit.guard.session_id, commit.guard.epoch))
            or self._out_of_place(commit)
            or self._used_twice([one for one in ids if one.kind is not IdKind.EVENT])
            or self._after_the_end(commit)
        )

    def _used_twice(self, ids: list[UniqueId]) -> DuplicateId | None:
        twice = (one for place, one in enumerate(ids) if one in self._journal.used or one in ids[:place])
        return next((DuplicateId(one.kind.value, one.id) for one in twice), None)

    def _out_of_place(self, commit: Commit) -> VersionConflict | None:
        heads: dict[str, tuple[int, str]] = {}
        for sealed in commit.events:
            version, digest = heads.get(sealed.stream) or self._journal.head(sealed.stream)
            if (sealed.sequence, sealed.previous_digest) != (version + 1, digest):
                return VersionConflict(sealed.stream)
            heads[sealed.stream] = (sealed.sequence, sealed.digest)
        return None

    def _after_the_end(self, commit: Commit) -> ConstraintBroken | None:
        topics = {sealed.stream: self._topics(sealed.stream) for sealed in commit.events}
        for sealed in commit.events:
            there = topics[sealed.stream]
            if RunClaimed.topic in there or (RunEnded.topic in there and sealed.event.topic not in AFTER_TERMINAL):
                return ConstraintBroken(f"{sealed.stream} has ended")
            there.add(sealed.event.topic)
        return None

    def _topics(self, stream: str) -> set[str]:
        return {self._journal.events[row].event.topic for row in self._journal.streams.get(stream, ())}


class JournalReader(EventReader):
    """The first events of the journal: those that were there when the view was opened."""

    def __init__(self, journal: Journal, seen: int) -> None:
        self._journal = journal
        self._seen = seen

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        """See `EventReader`."""
        if not 1 <= limit <= 10_000:
            raise ValueError(f"limit must be 1 to 10000, not {limit}")
        return self._records(stream)[after : after + limit]

    def last(self, stream: str) -> StoredRecord | None:
        """See `EventReader`."""
        return next(reversed(self._records(stream)), None)

    def locate(self, event_id: EventId) -> Location | None:
        """See `EventReader`."""
        row = self._row_of(UniqueId(IdKind.EVENT, event_id))
        return None if row is None else Location(self._journal.events[row].stream, self._journal.events[row].sequence)

    def standing(self, run_id: RunId) -> Standing:
        """See `EventReader`; a file that is never copied nor rolled back has one generation."""
        row = self._row_of(UniqueId(IdKind.RUN, run_id))
        return Standing(None if row is None else 1, 1, behind_anchor=False)

    def _row_of(self, one: UniqueId) -> int | None:
        with self._journal.lock:
            row = self._journal.used.get(one)
        return row if row is not None and row < self._seen else None

    def _records(self, stream: str) -> list[StoredRecord]:
        with self._journal.lock:
            rows = [row for row in self._journal.streams.get(stream, ()) if row < self._seen]
            return [self._journal.events[row].record for row in rows]


class JournalOwners(SessionOwners):
    """Who may write which session, in the same file: a commit is fenced by it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def owner(self, session_id: SessionId) -> Ownership | None:
        """See `SessionOwners`."""
        with self._journal.lock:
            return self._journal.owners.get(session_id)

    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        """See `SessionOwners`."""
        with self._journal.lock:
            if incarnation_id not in self._journal.lives:
                raise ValueError(f"incarnation {incarnation_id} was never registered")
            if self._journal.owners.get(session_id) != seen:
                return None
            return self._put(Ownership(session_id, incarnation_id, 1 if seen is None else seen.epoch + 1))

    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        """See `SessionOwners`."""
        with self._journal.lock:
            if self._journal.owners.get(session_id) != Ownership(session_id, incarnation_id, epoch):
                return False
            self._put(Ownership(session_id, None, epoch))
            return True

    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        """See `SessionOwners`."""
        require_few(seen)
        with self._journal.lock:
            return [self.take(row.session_id, incarnation_id, row) for row in seen]

    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        """See `SessionOwners`."""
        require_few(owned)
        with self._journal.lock:
            return [
                row.incarnation_id is not None and self.release(row.session_id, row.incarnation_id, row.epoch)
                for row in owned
            ]

    def register(self, incarnation: Incarnation) -> None:
        """See `SessionOwners`."""
        with self._journal.lock:
            known = self._journal.lives.get(incarnation.incarnation_id)
            if known is not None and known != incarnation:
                raise ValueError(f"incarnation {incarnation.incarnation_id} is recorded with other facts")
            if known is None:
                self._journal.write(lives=[incarnation.model_dump()])
                self._journal.lives[incarnation.incarnation_id] = incarnation

    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        """See `SessionOwners`."""
        with self._journal.lock:
            return self._journal.lives.get(incarnation_id)

    def _put(self, row: Ownership) -> Ownership:
        self._journal.write(owners=[row])
        self._journal.owners[row.session_id] = row
        return row


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A file that is not there yet."""
    journal = Journal(tmp_path / "journal")
    yield journal
    journal.close()


class TestJournalStore(EventStoreContract):
    """The contract of the port, on this store."""

    @pytest.fixture
    def event_store(self, journal: Journal) -> EventStore:
        """An empty store."""
        return JournalStore(journal)

    @pytest.fixture
    def owners(self, journal: Journal) -> SessionOwners:
        """The owners of the same store."""
        return JournalOwners(journal)


class TestJournalStoreReadAgain(EventStoreContract):
    """The same where every look opens the file anew: what the kit cannot know of a store, its team adds."""

    @pytest.fixture
    def event_store(self, journal: Journal, tmp_path: Path) -> EventStore:
        """Reads what is in the file, as the next process would."""

        class Reopening(JournalStore):
            @contextmanager
            def snapshot(self) -> Generator[EventReader, None, None]:
                journal.require_open()
                again = Journal(tmp_path / "journal")
                yield JournalReader(again, len(again.events))
                again.close()

        return Reopening(journal)

    @pytest.fixture
    def owners(self, journal: Journal) -> SessionOwners:
        """The owners of the same store."""
        return JournalOwners(journal)


class TestJournalOwners(SessionOwnersContract):
    """The contract of the owners, on the same file."""

    @pytest.fixture
    def owners(self, journal: Journal) -> SessionOwners:
        """Nobody owns anything."""
        return JournalOwners(journal)
