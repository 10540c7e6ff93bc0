"""Keeps sealed commits in SQLite: one transaction per call, rows beside the events. SPEC
section 7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager

from ...domain.errors import StoreUnavailable
from ...domain.events.session import RunAdmitted
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
from ...ports.run_importer import RunImporter
from .batch import insert, keep_all
from .errors import is_broken_rule, is_damage
from .reader import Readers
from .transaction import Transaction
from .why_not import owns, why_not
from .writer import Writer

_STORED = Stored()
_MAKE_FOREIGN = "UPDATE admissions SET generation = 0 WHERE run_id = ?"


class SqliteEventStore(EventStore, RunImporter):
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
        if len(commits) == 1:
            return [_append_alone(self._writer, commits[0])]
        try:
            return self._append_together(self._writer, commits)
        except _DamagedCommit:  # SQLite commits nothing in a transaction that has met it: each gets one of its own
            return [_append_alone(self._writer, commit) for commit in commits]

    def _append_together(self, writer: Writer, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        with Transaction(writer) as transaction:
            answers = _kept(transaction, commits)
            kept = [
                sealed
                for commit, answer in zip(commits, answers, strict=True)
                if answer is _STORED
                for sealed in commit.events
            ]
            if kept:
                transaction.advance(kept)
            else:
                transaction.undo()
        return answers

    def import_runs(self, commit: Commit) -> CommitAnswer:
        """See `RunImporter`."""
        if self._writer is None:
            raise StoreUnavailable("the store was opened for reading")
        return _append_alone(self._writer, commit, foreign=True)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        """See `EventStore`."""
        return self._readers.view()

    def close(self) -> None:
        """See `EventStore`."""
        if self._writer is not None:
            self._writer.leave_a_cut_log()
        self._readers.close()
        if self._writer is not None:  # last, so that SQLite may tidy up the WAL
            self._writer.close()


class _DamagedCommit(Exception):
    """A commit touches pages that are not what they should be; the cause says which."""


def _kept(transaction: Transaction, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
    """Insert what fits of the commits."""
    try:
        if keep_all(transaction, commits):
            return [_STORED] * len(commits)
    except sqlite3.DatabaseError as error:
        raise _DamagedCommit if is_damage(error) else error from error
    return [_keep_or_roll_back(transaction, commit) for commit in commits]


def _append_alone(writer: Writer, commit: Commit, *, foreign: bool = False) -> CommitAnswer:
    """Keep a commit in a transaction of its own.

    Args:
        writer: begins it.
        commit: what to keep.
        foreign: the runs that it admits are none of this store's own.
    """
    try:
        with Transaction(writer) as transaction:
            answer = _keep_alone(transaction, commit)
            if answer is _STORED and commit.events:
                if foreign:
                    _make_foreign(transaction, commit)
                transaction.advance(commit.events)
        return answer
    except _DamagedCommit as found:
        return Damaged(f"what the commit touches is damaged: {found.__cause__}")


def _make_foreign(transaction: Transaction, commit: Commit) -> None:
    for sealed in commit.events:
        if isinstance(sealed.event, RunAdmitted):
            transaction.cursor.execute(_MAKE_FOREIGN, (sealed.event.run_id,))


def _keep_alone(transaction: Transaction, commit: Commit) -> CommitAnswer:
    """Insert the only commit of a transaction, which is its savepoint."""
    try:
        refusal = _try(transaction, commit)
        if refusal is None:
            return _STORED
        transaction.undo()
        return why_not(transaction.raw, commit) or refusal
    except sqlite3.DatabaseError as error:
        raise _DamagedCommit if is_damage(error) else error from error


def _keep_or_roll_back(transaction: Transaction, commit: Commit) -> CommitAnswer:
    try:
        transaction.cursor.execute("SAVEPOINT one")
        refusal = _try(transaction, commit)
        if refusal is not None:
            transaction.cursor.execute("ROLLBACK TO one")
        transaction.cursor.execute("RELEASE one")
        return _STORED if refusal is None else why_not(transaction.raw, commit) or refusal
    except sqlite3.DatabaseError as error:
        raise _DamagedCommit if is_damage(error) else error from error


def _try(transaction: Transaction, commit: Commit) -> CommitAnswer | None:
    """Insert a commit, or say what stands against it; part of it may be inserted then."""
    if commit.guard not in transaction.owners:
        if not owns(transaction.raw, commit.guard):
            return Fenced(commit.guard.session_id, commit.guard.epoch)
        transaction.owners.add(commit.guard)
    stream = transaction.links.broken(transaction.raw, commit)
    if stream is not None:
        return VersionConflict(stream)
    try:
        insert(transaction, commit)
    except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
        if not is_broken_rule(error):
            raise
        return ConstraintBroken(str(error))
    return None
