"""Connections to one database, with everything of SPEC section 7 set and asserted before they are used."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool, SQLiteDatastore

from ...domain.errors import StoreUnavailable
from .place import Place

_STATEMENTS_CACHED = 256
_FULL = 2
WAL_PAGES = 1000
"""A short WAL is soon written over again, which syncs faster than a file that grows."""
_WRITER_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA wal_autocheckpoint = {WAL_PAGES}",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cell_size_check = ON",
)


def connect(database: str, busy_timeout_seconds: float) -> sqlite3.Connection:
    """Connect in autocommit mode; the busy timeout is set before any statement can lock.

    Args:
        database: SQLite's URI.
        busy_timeout_seconds: how long a statement waits for other processes, 0 or more.
    """
    return sqlite3.connect(
        database,
        uri=True,
        timeout=busy_timeout_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_CACHED,
    )


def connect_for_reading(place: Place, busy_timeout_seconds: float) -> sqlite3.Connection:
    """Connect so that no byte of the database or its WAL can change. Never `immutable`: that would not see the WAL."""
    connection = connect(place.uri("ro"), busy_timeout_seconds)
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


class _WriterPool(SQLiteConnectionPool):
    """Makes the connection that writes.

    The library's own caches one prepared statement only, and takes whole seconds as busy timeout.
    """

    busy_timeout_seconds: float = 5.0

    def _create_connection(self) -> SQLiteConnection:
        connection = connect(self.db_name, self.busy_timeout_seconds)
        try:
            _prepare_for_writing(connection)
        except BaseException:
            connection.close()
            raise
        return SQLiteConnection(connection, max_age=None)


def _prepare_for_writing(connection: sqlite3.Connection) -> None:
    for statement in _WRITER_SETTINGS:
        connection.execute(statement)
    if _setting(connection, "journal_mode") != "wal":
        connection.execute("PRAGMA journal_mode = WAL")
    found = {name: _setting(connection, name) for name in ("journal_mode", "synchronous", "foreign_keys")}
    if found != {"journal_mode": "wal", "synchronous": _FULL, "foreign_keys": 1}:
        raise StoreUnavailable(f"this SQLite does not keep what is needed for a durable store: {found}")


def _setting(connection: sqlite3.Connection, name: str) -> object:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return value


class WriterDatastore(SQLiteDatastore):
    """The library's datastore over a pool that makes our kind of connection.

    Args:
        place: an existing database.
        busy_timeout_seconds: how long a statement waits for other processes.
    """

    def __init__(self, place: Place, busy_timeout_seconds: float) -> None:
        super().__init__(place.uri("rw"), originator_id_type="text")
        self.pool = _WriterPool(db_name=place.uri("rw"))
        self.pool.busy_timeout_seconds = busy_timeout_seconds

    def connection(self) -> SQLiteConnection:
        """The one connection that writes, held until `close`."""
        return self.pool.get_connection(is_writer=True)


def close_quietly(connection: sqlite3.Connection) -> None:
    """Close a connection that may have failed; what it could not do any more does not matter."""
    with suppress(sqlite3.Error):
        connection.close()


def journal_files(database: Path) -> tuple[Path, ...]:
    """Files that SQLite may have left beside a database."""
    return tuple(Path(f"{database}{suffix}") for suffix in ("-journal", "-wal", "-shm"))
