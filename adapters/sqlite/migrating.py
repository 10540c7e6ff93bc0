"""Brings a store of an older version forward: in one transaction, alone, and never by another event. SPEC section 7.

Nobody else may have the database open meanwhile: a program of the older version, with its rules in memory, could go on
to write by them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ...domain.errors import StoreDamaged, StoreUnavailable
from ...ports.store_keeping import StoreCondition
from . import projection_tables, schema
from .anchor import Anchor
from .connection import connect
from .control_rows import add_function
from .errors import is_busy, translated
from .migrations import steps_from
from .place import Place
from .projections import rebuild_in
from .reader import Readers
from .statement_cursor import StatementCursor

_EVENTS = "stored_events"
_CHANGING = {
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_DROP_TABLE,
}


class _Statements(NamedTuple):
    """The migration's transaction, as the rebuilding of views takes it."""

    raw: sqlite3.Cursor
    cursor: StatementCursor


def condition_of_older(place: Place, busy_timeout_seconds: float) -> StoreCondition:
    """How a store of any published version stands; its events are for nobody to read before it is brought forward.

    Raises:
        StoreUnavailable, StoreDamaged, StoreVersionNewer: it could not be looked at.
    """
    readers = Readers(place, busy_timeout_seconds, schema.require_published)
    try:
        with readers.view() as view:
            return view.condition()
    finally:
        readers.close()


def bring_forward(place: Place, busy_timeout_seconds: float, on_point: Callable[[str], None] | None = None) -> None:
    """Bring an older store to the present version; nothing happens to one that another process brought there.

    Killed at any instant, the store is of the old version or of the new one, whole.

    Args:
        place: the store's files; whether it may be written was asked before.
        busy_timeout_seconds: how long to wait for others to close it.
        on_point: told before each statement (`store.migration:<n>`) and around COMMIT; tests kill there.

    Raises:
        StoreUnavailable: another program has it open; nothing was changed.
        StoreDamaged: it is not what its version says; nothing was changed.
        StoreFull: there was no room; nothing was changed.
    """
    hit = on_point or _ignore
    with (
        translated(place.database, "migrate"),
        Anchor(place.anchor, busy_timeout_seconds).exclusively(),  # whoever else wants to migrate it waits here
        closing(connect(place.uri("rw"), busy_timeout_seconds)) as connection,
    ):
        _begin_alone(connection, place)
        if schema.version_of(connection) == schema.SCHEMA_VERSION:
            return
        migrate_in(connection, place.database, on_point)
        hit("store.before_commit")
        connection.execute("COMMIT")
        hit("store.after_commit")


def _begin_alone(connection: sqlite3.Connection, place: Place) -> None:
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        raise StoreUnavailable(
            f"{place.database} is to be brought to schema version {schema.SCHEMA_VERSION}, and another program"
            " has it open; nothing was changed"
        ) from error


def migrate_in(connection: sqlite3.Connection, path: Path, on_point: Callable[[str], None] | None = None) -> None:
    """Do it inside the connection's present transaction, which has an older store's tables or the present ones.

    Raises:
        StoreDamaged: what comes of it is no store of the present version; the transaction is to be undone.
        sqlite3.Error: a statement failed; the transaction is to be undone.
    """
    steps = steps_from(schema.require_published(connection, path))
    if not steps:
        return
    cursor = StatementCursor(connection.cursor(), None if on_point is None else _renamed(on_point))
    add_function(connection)
    connection.set_authorizer(_spare_events)
    try:
        for migration in steps:
            for statement in migration.statements:
                cursor.execute(statement)
            cursor.execute(f"PRAGMA user_version = {migration.version}")
    finally:
        connection.set_authorizer(None)
    schema.require_store(connection, path)
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise StoreDamaged(f"{path} holds control rows that name nothing; it was not migrated")
    if not projection_tables.are_as_expected(connection):
        rebuild_in(_Statements(cursor.sqlite_cursor, cursor))


def _renamed(on_point: Callable[[str], None]) -> Callable[[str], None]:
    return lambda point: on_point(point.replace("store.statement:", "store.migration:"))


def _spare_events(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Refuse whatever could change an event; the names of SQLite's arguments depend on the action."""
    changes = (action in _CHANGING and first == _EVENTS) or (action == sqlite3.SQLITE_ALTER_TABLE and second == _EVENTS)
    return sqlite3.SQLITE_DENY if changes else sqlite3.SQLITE_OK


def _ignore(point: str) -> None:
    """Nobody is told."""
