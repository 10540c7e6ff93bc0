"""Owners and epochs as control rows, checked by `append` inside its own transaction. SPEC section 15.

They do not raise the commit counter: they are no facts. Should the last of them be lost with a WAL, an epoch may be
given again, but to another incarnation, and a guard names both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from pydantic import ValidationError

from ...domain.errors import StoreDamaged, StoreUnavailable
from ...domain.identifiers import IncarnationId, SessionId
from ...ports.incarnations import Incarnation
from ...ports.session_owners import Ownership, SessionOwners, require_few
from .control_rows import COLUMNS, checksum, is_whole
from .errors import translated
from .place import Place
from .reader import Readers
from .transaction import Transaction
from .writer import Writer

_OWNER = "SELECT session_id, incarnation_id, epoch FROM session_owners WHERE session_id = ?"
_OWNERS = _OWNER.replace("= ?", "IN (SELECT value FROM json_each(?))")
_SET = (
    "INSERT INTO session_owners VALUES (?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
    " incarnation_id = excluded.incarnation_id, epoch = excluded.epoch, checksum = excluded.checksum"
)
_INCARNATION = (
    "SELECT incarnation_id, pid, process_start_time, host, boot_id, pid_namespace, checksum FROM incarnations"
    " WHERE incarnation_id = ?"
)
_REGISTER = "INSERT INTO incarnations VALUES (?, ?, ?, ?, ?, ?, ?)"


class SqliteSessionOwners(SessionOwners):
    """The control rows of one store; thread-safe.

    Args:
        place: the store's files.
        readers: look.
        writer: begins transactions; None where the store was opened for reading.
    """

    def __init__(self, place: Place, readers: Readers, writer: Writer | None) -> None:
        self._place = place
        self._readers = readers
        self._writer = writer

    def owner(self, session_id: SessionId) -> Ownership | None:
        """See `SessionOwners`."""
        with self._readers.view() as view, translated(self._place.database, "look for an owner in"):
            return _ownership(view.connection.execute(_OWNER, (session_id,)).fetchone())

    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        """See `SessionOwners`."""
        with self._transaction() as transaction:
            if _present(transaction, session_id) != seen:
                transaction.undo()
                return None
            if _recorded(transaction.raw, incarnation_id) is None:
                raise ValueError(f"incarnation {incarnation_id} was never registered")
            taken = Ownership(session_id, incarnation_id, 1 if seen is None else seen.epoch + 1)
            _set(transaction, taken)
        return taken

    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        """See `SessionOwners`."""
        with self._transaction() as transaction:
            if _present(transaction, session_id) != Ownership(session_id, incarnation_id, epoch):
                transaction.undo()
                return False
            _set(transaction, Ownership(session_id, None, epoch))
        return True

    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        """See `SessionOwners`."""
        require_few(seen)
        if not seen:
            return ()
        with self._transaction() as transaction:
            if _recorded(transaction.raw, incarnation_id) is None:
                raise ValueError(f"incarnation {incarnation_id} was never registered")
            present = _all_present(transaction, seen)
            answers = [
                Ownership(row.session_id, incarnation_id, row.epoch + 1) if row in present else None for row in seen
            ]
            _set_all(transaction, [taken for taken in answers if taken is not None])
        return answers

    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        """See `SessionOwners`."""
        require_few(owned)
        if not owned:
            return ()
        with self._transaction() as transaction:
            present = _all_present(transaction, owned)
            answers = [row.incarnation_id is not None and row in present for row in owned]
            released = (row for row, owns in zip(owned, answers, strict=True) if owns)
            _set_all(transaction, [row._replace(incarnation_id=None) for row in released])
        return answers

    def register(self, incarnation: Incarnation) -> None:
        """See `SessionOwners`."""
        with self._transaction() as transaction:
            recorded = _recorded(transaction.raw, incarnation.incarnation_id)
            if recorded is None:
                facts = tuple(incarnation.model_dump().values())
                transaction.cursor.execute(_REGISTER, (*facts, checksum("incarnations", *facts)))
                return
            transaction.undo()
        if recorded != incarnation:
            raise ValueError(f"incarnation {incarnation.incarnation_id} is recorded with other facts")

    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        """See `SessionOwners`; damaged facts are none, so that nobody is taken for dead by them, and `verify` names
        them.
        """
        with self._readers.view() as view, translated(self._place.database, "look for an incarnation in"):
            try:
                return _recorded(view.connection.cursor(), incarnation_id)
            except StoreDamaged:
                return None

    def _transaction(self) -> Transaction:
        if self._writer is None:
            raise StoreUnavailable("the store was opened for reading")
        return Transaction(self._writer)


def _present(transaction: Transaction, session_id: SessionId) -> Ownership | None:
    return _ownership(transaction.raw.execute(_OWNER, (session_id,)).fetchone())


def _all_present(transaction: Transaction, rows: Sequence[Ownership]) -> set[Ownership]:
    """The rows of the same sessions as they are now."""
    sessions = json.dumps([row.session_id for row in rows])
    return {Ownership(*row) for row in transaction.raw.execute(_OWNERS, (sessions,))}


def _set(transaction: Transaction, *rows: Ownership) -> None:
    transaction.owners.clear()
    transaction.execute_all(_SET, [(*row, checksum("session_owners", *row)) for row in rows])


def _set_all(transaction: Transaction, rows: Sequence[Ownership]) -> None:
    if rows:
        _set(transaction, *rows)
    else:
        transaction.undo()


def _ownership(row: tuple[SessionId, IncarnationId | None, int] | None) -> Ownership | None:
    return None if row is None else Ownership(*row)


def _recorded(cursor: sqlite3.Cursor, incarnation_id: IncarnationId) -> Incarnation | None:
    cursor.execute(_INCARNATION, (incarnation_id,))
    row = cursor.fetchone()
    if row is None:
        return None
    damaged = f"the recorded facts of incarnation {incarnation_id} are damaged"
    if not is_whole("incarnations", row):
        raise StoreDamaged(damaged)
    try:
        return Incarnation.model_validate(dict(zip(COLUMNS["incarnations"], row, strict=False)))
    except ValidationError as error:
        raise StoreDamaged(damaged) from error
