"""What the database consists of beside the projections: control rows, unique ids, and the rules that hold against raw
SQL.

The events stand in the rowid table of eventsourcing's application recorder. Whatever changes here changes
`SCHEMA_VERSION`, and needs a step in `migrations`. SPEC section 7.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import NamedTuple

from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from ...domain.errors import StoreDamaged, StoreVersionNewer, StoreVersionOlder
from .event_rules import fitting_rule, known_rules
from .migrations import OLDEST_VERSION

APPLICATION_ID = 0x53465054
"""Marks a database as a Safepoint store ("SFPT")."""
SCHEMA_VERSION = 3

USED_ID = "an id is missing, or is used already"

_TABLES = (
    """CREATE TABLE store_control (
        one INTEGER PRIMARY KEY CHECK (one = 1), store_id TEXT NOT NULL,
        generation INTEGER NOT NULL CHECK (generation >= 1),
        device TEXT NOT NULL, inode TEXT NOT NULL, boot_id TEXT, checksum TEXT)""",
    "CREATE TABLE commits (counter INTEGER PRIMARY KEY, digest TEXT NOT NULL)",
    """CREATE TABLE adoptions (
        generation INTEGER PRIMARY KEY, adopted_by TEXT NOT NULL, note TEXT NOT NULL, adopted_at TEXT NOT NULL,
        found TEXT NOT NULL, checksum TEXT)""",
    """CREATE TABLE unique_ids (
        id TEXT NOT NULL, kind TEXT NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (id, kind)) WITHOUT ROWID""",
    """CREATE TABLE admissions (
        run_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, generation INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE sealed_streams (
        stream TEXT NOT NULL, sealed_by TEXT NOT NULL, PRIMARY KEY (stream, sealed_by)) WITHOUT ROWID""",
    """CREATE TABLE incarnations (
        incarnation_id TEXT PRIMARY KEY, pid INTEGER NOT NULL, process_start_time INTEGER NOT NULL, host TEXT NOT NULL,
        boot_id TEXT NOT NULL, pid_namespace TEXT NOT NULL, checksum TEXT) WITHOUT ROWID""",
    """CREATE TABLE session_owners (
        session_id TEXT PRIMARY KEY, incarnation_id TEXT REFERENCES incarnations (incarnation_id),
        epoch INTEGER NOT NULL CHECK (epoch >= 1), checksum TEXT) WITHOUT ROWID""",
)


class SchemaObject(NamedTuple):
    """A table, index or trigger as SQLite describes it."""

    kind: str
    name: str
    table: str
    sql: str | None


def _guards() -> list[str]:
    """Triggers that hold whatever conflict clause (OR REPLACE, OR IGNORE) the statement carries."""
    facts = ("stored_events", "unique_ids", "sealed_streams")
    return [
        f"""CREATE TRIGGER unique_ids_insert BEFORE INSERT ON unique_ids
        WHEN typeof(NEW.id) <> 'text' OR EXISTS (SELECT 1 FROM unique_ids WHERE id = NEW.id AND kind = NEW.kind) BEGIN
        SELECT RAISE(ABORT, '{USED_ID}'); END""",
        f"""CREATE TRIGGER admissions_insert BEFORE INSERT ON admissions
        WHEN typeof(NEW.run_id) <> 'text' OR typeof(NEW.session_id) <> 'text'
        OR EXISTS (SELECT 1 FROM admissions WHERE run_id = NEW.run_id) BEGIN
        SELECT RAISE(ABORT, '{USED_ID}'); END""",
        """CREATE TRIGGER admissions_update BEFORE UPDATE ON admissions
        WHEN NEW.run_id <> OLD.run_id OR NEW.session_id <> OLD.session_id OR NEW.generation <> 0 BEGIN
        SELECT RAISE(ABORT, 'an admission can only become foreign'); END""",
        *(
            f"""CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} BEGIN
        SELECT RAISE(ABORT, 'facts are never changed'); END"""
            for table in facts
        ),
        *(
            f"""CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} BEGIN
        SELECT RAISE(ABORT, 'facts are never deleted'); END"""
            for table in (*facts, "admissions")
        ),
    ]


@lru_cache(maxsize=1)
def statements() -> tuple[str, ...]:
    """Everything that makes an empty store, projections aside."""
    recorder = SQLiteApplicationRecorder(SQLiteDatastore(":memory:", originator_id_type="text"))
    return (*recorder.create_table_statements, *_TABLES, fitting_rule(), *known_rules(), *_guards())


def objects_of(connection: sqlite3.Connection) -> frozenset[SchemaObject]:
    """What a database consists of."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return frozenset(SchemaObject(*row) for row in rows)


@lru_cache(maxsize=1)
def expected() -> frozenset[SchemaObject]:
    """What a store of this version consists of, projections aside."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements():
            connection.execute(statement)
        return objects_of(connection)
    finally:
        connection.close()


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version that is written in a database."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def require_published(connection: sqlite3.Connection, path: object) -> int:
    """Make sure that a database is marked as a store of a version that is known here; answers which.

    Raises:
        StoreVersionNewer: it was written by a newer version.
        StoreDamaged: it is not as it should be.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    version = version_of(connection)
    if application_id != APPLICATION_ID:
        raise StoreDamaged(f"{path} has an anchor, and is not marked as a store")
    if version > SCHEMA_VERSION:
        raise StoreVersionNewer(version, SCHEMA_VERSION)
    if version < OLDEST_VERSION:
        raise StoreDamaged(f"{path} has schema version {version}, which was never published")
    return version


def require_store(connection: sqlite3.Connection, path: object) -> None:
    """Make sure that a database is a store of this version, by reading alone.

    Raises:
        StoreVersionNewer: it was written by a newer version.
        StoreVersionOlder: it was written by an older version, and not brought forward yet.
        StoreDamaged: it is not as it should be.
    """
    version = require_published(connection, path)
    if version < SCHEMA_VERSION:
        raise StoreVersionOlder(version, SCHEMA_VERSION)
    found, known = objects_of(connection), expected()
    tables = {one.table for one in known}
    strange = {one for one in found - known if one.kind == "trigger" and one.table in tables}
    wrong = sorted(one.name for one in (known - found) | strange)
    if wrong:
        raise StoreDamaged(f"{path} does not have the tables and rules of schema version {version}: {', '.join(wrong)}")
