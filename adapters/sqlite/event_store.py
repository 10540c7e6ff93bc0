"""Keeps sealed commits in SQLite: one transaction per call, a savepoint per commit, rows beside the events. SPEC
section 7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager

from eventsourcing.persistence import StoredEvent

from ...domain.errors import StoreUnavailable
from ...domain.sealing import SealedEvent
from ...ports.event_store import (
    Commit,
    CommitAnswer,
    ConstraintBroken,
    Damaged,
    EventReader,
    EventStore,
    Fenced,
    Stored,
    VersionConflict,
)
from .errors import is_damage
from .projection_tables import upsert
from .reader import Readers
from .transaction import Transaction
from .why_not import owns, why_not
from .writer import Writer


class SqliteEventStore(EventStore):
    """The streams of one store; thread-safe.

    Args:
        readers: hands out consistent views.
        writer: begins transactions; None where the store was opened for reading.
    """

    def __init__(self, readers: Readers, writer: Writer | None) -> None:
        self._readers = readers
        self._writer = writer

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        """See `EventStore`."""
        if not commits:
            return ()
        if self._writer is None:
            raise StoreUnavailable("the store was opened for reading")
        with Transaction(self._writer) as transaction:
            if len(commits) == 1:
                answers = [_keep_alone(transaction, commits[0])]
            else:
                answers = [_keep_or_roll_back(transaction, commit) for commit in commits]
            kept: list[SealedEvent] = []
            for commit, answer in zip(commits, answers, strict=True):
                if isinstance(answer, Stored):
                    kept += commit.events
            if kept:
                transaction.advance(kept)
            else:
                transaction.undo()
        return answers

    def snapshot(self) -> AbstractContextManager[EventReader]:
        """See `EventStore`."""
        return self._readers.view()

    def close(self) -> None:
        """See `EventStore`."""
        self._readers.close()
        if self._writer is not None:  # last, so that SQLite may tidy up the WAL
            self._writer.close()


def _keep_alone(transaction: Transaction, commit: Commit) -> CommitAnswer:
    """Insert the only commit of a call; the transaction itself is its savepoint."""
    try:
        refusal = _try(transaction, commit)
    except sqlite3.DatabaseError as error:
        refusal = _refused(error)
    if refusal is None:
        return Stored()
    transaction.undo()
    return why_not(transaction.raw, commit) or refusal


def _keep_or_roll_back(transaction: Transaction, commit: Commit) -> CommitAnswer:
    transaction.cursor.execute("SAVEPOINT one")
    try:
        refusal = _try(transaction, commit)
    except sqlite3.DatabaseError as error:
        refusal = _refused(error)
    if refusal is None:
        transaction.cursor.execute("RELEASE one")
        return Stored()
    transaction.cursor.execute("ROLLBACK TO one")
    transaction.cursor.execute("RELEASE one")
    return why_not(transaction.raw, commit) or refusal


def _try(transaction: Transaction, commit: Commit) -> CommitAnswer | None:
    """Insert a commit, or say what stands against it before SQLite is asked."""
    if not owns(transaction.raw, commit.guard):
        return Fenced(commit.guard.session_id, commit.guard.epoch)
    stream = transaction.links.broken(transaction.raw, commit)
    if stream is not None:
        return VersionConflict(stream)
    events = [StoredEvent(sealed.stream, sealed.sequence, sealed.event.topic, sealed.state) for sealed in commit.events]
    transaction.recorder._insert_events(transaction.cursor, events)  # noqa: SLF001 - pinned; inside our own transaction
    for row in commit.rows:
        transaction.cursor.execute(*upsert(row))
    transaction.links.add(commit)
    return None


def _refused(error: sqlite3.DatabaseError) -> CommitAnswer:
    """The answer to one commit that SQLite refused, or the error itself when it concerns the whole store."""
    if isinstance(error, sqlite3.IntegrityError) or "malformed JSON" in str(error):
        return ConstraintBroken(str(error))
    if is_damage(error):
        return Damaged(f"what the commit touches is damaged: {error}")
    raise error
