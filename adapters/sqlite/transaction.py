"""One transaction: BEGIN IMMEDIATE to COMMIT and anchor, with an instant before each statement. SPEC sections 7 and
20.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from ...domain.projections import Column
from ...domain.sealing import SealedEvent
from ...ports.event_store import OwnerGuard
from .errors import store_error
from .links import Links
from .position import INSERT, ROWS_KEPT, TRIM, TRIMMED_EVERY, Position
from .statement_cursor import StatementCursor
from .writer import Writer


class Transaction:
    """Begins with the `with` block, commits at its end unless it was undone; an error undoes it.

    Attributes:
        cursor: executes statements that change something.
        execute: as the cursor's; the quickest way where nobody is told of statements.
        raw: looks things up.
        position: how far the store has come, this transaction included once it is advanced.
        links: what this connection knows of the chains that are stored.
        owners: those that this connection knows to be the stored ones: whoever writes an owner clears them.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._over = False
        self._kept_events = False
        self.cursor: StatementCursor
        self.execute: Callable[..., object]
        self.raw: sqlite3.Cursor
        self.position: Position
        self.links: Links
        self.owners: set[OwnerGuard]

    def __enter__(self) -> Transaction:
        self._begun(self._writer.begin())
        return self

    def _begun(self, begun: tuple[sqlite3.Cursor, Position]) -> None:
        self.raw, self.position = begun
        writer = self._writer
        self.cursor, self.links, self.owners = writer.cursor, writer.links, writer.owners
        if writer.on_point is None:
            self.execute = self.raw.execute
        else:
            self.cursor.count_anew()
            self.execute = self.cursor.execute

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None and not self._over:
                self._writer.commit(self.raw, self.position, kept_events=self._kept_events)
                return
            self._writer.rollback()
            if isinstance(error, sqlite3.Error):
                raise store_error(error, self._writer.place.database, "write to") from error
        finally:
            self._writer.end()

    def execute_all(self, statement: str, rows: Sequence[tuple[Column, ...]]) -> None:
        """Execute a statement for each row."""
        if len(rows) > 1 and self._writer.on_point is None:
            self.raw.executemany(statement, rows)
            return
        for row in rows:
            self.execute(statement, row)

    @property
    def insert_event(self) -> str:
        """The statement that inserts an event: that of eventsourcing's recorder."""
        return self._writer.insert_event

    def undo(self) -> None:
        """Undo everything; what follows in the block may only look."""
        self._over = True
        self._writer.rollback()

    def begin_anew(self) -> None:
        """Undo everything, and begin once more; other processes may have written in between."""
        self._begun(self._writer.begin_anew())

    def advance(self, kept: Iterable[SealedEvent]) -> None:
        """Move the position on by the events that this transaction keeps, in the order of their rows."""
        before = self.position.counter
        self.position = position = self.position.after(*[sealed.digest for sealed in kept])
        self._kept_events = True
        self.execute(INSERT, position)
        now = position.counter
        if now // TRIMMED_EVERY != before // TRIMMED_EVERY:
            last = now - ROWS_KEPT
            self.execute(TRIM, (last - 2 * TRIMMED_EVERY - (now - before), last))
