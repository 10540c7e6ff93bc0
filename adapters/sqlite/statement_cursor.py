"""The cursor that every statement which changes something goes through, so that tests can kill before each. SPEC
section 20.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from eventsourcing.sqlite import SQLiteCursor


class StatementCursor(SQLiteCursor):
    """The cursor that eventsourcing's recorder inserts with; tells of each statement before it is executed."""

    def __init__(self, sqlite_cursor: sqlite3.Cursor, on_point: Callable[[str], None] | None) -> None:
        super().__init__(sqlite_cursor)
        self._on_point = on_point
        self._statements = 0

    def execute(self, *args: Any, **kwargs: Any) -> None:
        """Execute one statement."""
        if self._on_point is not None:
            self._statements += 1
            self._on_point(f"store.statement:{self._statements}")
        self.sqlite_cursor.execute(*args, **kwargs)

    def count_anew(self) -> None:
        """The next statement is the first of its transaction."""
        self._statements = 0
