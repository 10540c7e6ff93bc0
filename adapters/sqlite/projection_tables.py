"""The projections as SQL: their tables and indexes, and how a row is put in. SPEC section 7.

They may be dropped and made again at any time, so their shape is no part of the schema version: where it is not what
this program expects, they are rebuilt. The journal of operations is a view over the events, and what was dispatched is
read from them, too: neither can disagree with them, T1 writes no row, and T2 a short one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...domain.events import tool
from ...domain.events.tool import ToolDispatched, ToolResponded
from ...domain.operation.rows import RESPONDED_COLUMNS, operation_row, responded_values
from ...domain.projections import TABLES, TOPICS_WITH_ROWS, Column, Row, Table, rows_of
from ...domain.sealing import SealedEvent
from . import operation_view
from .operation_view import OPERATIONS, OUTCOMES
from .stored_fields import field_of

JOURNAL = "operation_journal"
WRITTEN: Mapping[str, Table] = {
    **{name: table for name, table in TABLES.items() if name not in (JOURNAL, OPERATIONS)},
    OUTCOMES: operation_view.TABLE,
}
"""The tables that projections are kept in; those that are not among them are SQL views."""
TRIGGER = "trigger"
ROWS_AT_ONCE = 2_000
"""How many rows one statement deletes before a rebuild."""

NEWEST_AT = "COALESCE(head_admitted_at, opened_at, '')"
OPEN_RUN = "ended_event_id IS NULL AND abandoned_by IS NULL"
OPEN_PERMISSION = "decided_event_id IS NULL AND closed_event_id IS NULL"
WATCHED = "(watched = 'indeterminate' OR watched = 'parked' OR watched = 'unknown') AND cleared_by IS NULL"
"""No list (`IN`): an index on this is looked at with each row of an outcome, and SQLite would build the list anew each
time.
"""

_INDEXES = (
    f"CREATE INDEX sessions_newest ON sessions ({NEWEST_AT}, session_id)",
    "CREATE INDEX runs_of_session ON runs (session_id, admitted_sequence)",
    f"CREATE INDEX runs_open ON runs (session_id) WHERE {OPEN_RUN}",
    f"CREATE INDEX operations_watched ON {OUTCOMES} (session_id, operation_id) WHERE {WATCHED}",
    f"CREATE INDEX permissions_open ON permissions (session_id) WHERE {OPEN_PERMISSION}",
    "CREATE INDEX continuations_of_boundary ON continuations (boundary_digest)",
    "CREATE INDEX continuations_to_run ON continuations (target_run_id)",
    "CREATE INDEX continuations_of_session ON continuations (session_id, claimed_at)",
)
"""None of them holds anything that T1 or T2 writes: a commit costs what the pages cost that it touches."""
_BESIDE = (
    "CREATE INDEX IF NOT EXISTS runs_of_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS runs_of_workspace ON runs (workspace_identity, cwd) WHERE cwd IS NOT NULL",
)
"""Not part of the shape: views that were made without them are read as they stand, only slower."""

_ENTRIES = {
    tool.ToolDispatched.topic: "dispatched",
    tool.ToolResponded.topic: "responded",
    tool.ToolRedeliveryStarted.topic: "redelivery_started",
    tool.ToolReconciled.topic: "reconciled",
    tool.ToolRecoveryDecided.topic: "recovery_decided",
    tool.ToolAttested.topic: "attested",
}


def _journal() -> str:
    columns = {name: field_of(name) for name in ("run_id", "operation_id", "event_id", "occurred_at")}
    entry = " ".join(f"WHEN '{topic}' THEN '{entry}'" for topic, entry in _ENTRIES.items())
    columns |= {"sequence": "originator_version", "entry": f"CASE topic {entry} END"}
    listed = ", ".join(f"{columns[name]} AS {name}" for name in TABLES[JOURNAL].columns)
    topics = ", ".join(f"'{topic}'" for topic in _ENTRIES)
    rows = f"FROM stored_events WHERE topic IN ({topics}) AND {columns['operation_id']} IS NOT NULL"
    return f"CREATE VIEW {JOURNAL} AS SELECT {listed} {rows}"


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Names of the projections' tables, indexes and views."""
    return frozenset(TABLES) | frozenset(WRITTEN) | frozenset(statement.split()[2] for statement in _INDEXES)


def table_statement(name: str, *, database: str = "main") -> str:
    """The statement that makes a table of `WRITTEN`."""
    table = WRITTEN[name]
    columns = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
    return f"CREATE TABLE {database}.{name} ({columns}, PRIMARY KEY ({', '.join(table.key)})) WITHOUT ROWID"


@lru_cache(maxsize=1)
def sql_views() -> Mapping[str, str]:
    """The projections that are views over the events, and the statement that makes each."""
    return {OPERATIONS: operation_view.view_statement(), JOURNAL: _journal()}


def statements() -> tuple[str, ...]:
    """Everything that makes empty projections, beside the table of the events."""
    return (
        *(table_statement(name) for name in sorted(WRITTEN)),
        *_INDEXES,
        *_BESIDE,
        *sql_views().values(),
    )


@lru_cache(maxsize=1)
def _expected() -> frozenset[tuple[str, str]]:
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements():
            connection.execute(statement)
        return _shape(connection)
    finally:
        connection.close()


def _shape(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return frozenset((name, sql) for name, sql in rows if name in names())


def are_as_expected(connection: sqlite3.Connection) -> bool:
    """Tell whether the projections have the shape that this program reads and writes."""
    return _shape(connection) == _expected()


@lru_cache(maxsize=256)
def _upsert(table: str, columns: tuple[str, ...], database: str) -> str:
    key = WRITTEN[table].key
    rest = [f"{column} = excluded.{column}" for column in columns if column not in key]
    action = f"UPDATE SET {', '.join(rest)}" if rest else "NOTHING"
    places = ", ".join("?" * len(columns))
    return (
        f"INSERT INTO {database}.{table} ({', '.join(columns)}) VALUES ({places})"
        f" ON CONFLICT ({', '.join(key)}) DO {action}"
    )


def written_rows(sealed: SealedEvent) -> Sequence[Row]:
    """The rows of `WRITTEN` that one event changes."""
    event: Any = sealed.event  # its type is looked at by identity, which is quicker than what a checker follows
    kind = type(event)
    if kind is ToolDispatched:  # T1: its event says it all
        return ()
    if kind is ToolResponded:  # T2
        row = operation_row(sealed, event)
        return () if row is None else (tuple.__new__(Row, (OUTCOMES, row.values)),)
    if event.topic not in TOPICS_WITH_ROWS:
        return ()
    rows = (_written(row, event.session_id) for row in rows_of(sealed) if row.table != JOURNAL)
    return [row for row in rows if row is not None]


def _written(row: Row, session_id: str) -> Row | None:
    return operation_view.outcome_row(row, session_id) if row.table == OPERATIONS else row


def upsert(row: Row, *, database: str = "main") -> tuple[str, tuple[Column, ...]]:
    """The statement that puts a row of `WRITTEN` in, and its values: columns that the row does not name stay as they
    are.
    """
    return _upsert(row.table, tuple(row.values), database), tuple(row.values.values())


def changes(sealed: SealedEvent) -> Sequence[tuple[str, str, tuple[Column, ...]]]:
    """What puts the rows of `WRITTEN` in that one event changes: each one's table, statement and values."""
    event: Any = sealed.event
    if type(event) is ToolResponded:  # T2
        operation_id = event.__dict__["operation_id"]
        return () if operation_id is None else ((OUTCOMES, _respond(), (operation_id, *responded_values(event))),)
    return [(row.table, *upsert(row)) for row in written_rows(sealed)]


@lru_cache(maxsize=1)
def _respond() -> str:
    return _upsert(OUTCOMES, (*WRITTEN[OUTCOMES].key, *RESPONDED_COLUMNS), "main")


def drop_statements(connection: sqlite3.Connection, *kinds: str) -> Iterable[str]:
    """What removes the projections that are there, whatever their shape: their views, indexes or tables; or the
    triggers that somebody has put on them.
    """
    rows = connection.execute("SELECT type, name, tbl_name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    for kind in kinds:
        about = ((name, of_table if kind == TRIGGER else name) for found, name, of_table in rows if found == kind)
        yield from (f'DROP {kind} "{name}"' for name, projection in about if projection in names())


def has_triggers(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether somebody has put a trigger on a projection: no version of this program has."""
    found = "SELECT 1 FROM main.sqlite_master WHERE type = ? AND tbl_name = ?"
    return connection.execute(found, (TRIGGER, name)).fetchone() is not None


def shows_the_same(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether one of `sql_views` is there and shows what this program's shows, whatever statement made it.

    Args:
        connection: has all of `WRITTEN` as temporary tables, too: as the events make them.
        name: which one.

    Raises:
        sqlite3.DatabaseError: it cannot be read.
    """
    found = "SELECT sql FROM main.sqlite_master WHERE type = 'view' AND name = ?"
    made_by, expected = connection.execute(found, (name,)).fetchone(), sql_views()[name]
    if made_by is None or made_by == (expected,):
        return made_by is not None
    connection.execute(expected.replace("CREATE VIEW", "CREATE TEMP VIEW", 1))
    try:
        listed = ", ".join(TABLES[name].columns)
        here, there = (f"SELECT {listed} FROM {database}.{name}" for database in ("main", "temp"))
        counts = {connection.execute(f"SELECT COUNT(*) FROM ({one})").fetchone() for one in (here, there)}
        return len(counts) == 1 and connection.execute(f"{here} EXCEPT {there} LIMIT 1").fetchone() is None
    finally:
        connection.execute(f"DROP VIEW temp.{name}")


def thinning_statements(connection: sqlite3.Connection) -> Iterable[str]:
    """What deletes some rows of a table of the projections, to be repeated until none is left.

    SQLite keeps every page that one statement changes in memory until it ends; to drop a full table is one statement.
    """
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
        if name in WRITTEN and (name, sql) in _expected():
            key = ", ".join(WRITTEN[name].key)
            yield f"DELETE FROM {name} WHERE ({key}) IN (SELECT {key} FROM {name} LIMIT {ROWS_AT_ONCE})"


def forget(connection: sqlite3.Connection) -> None:
    """Take the projections out of the schema without touching their pages, which are damaged and stay unused.

    Args:
        connection: in a transaction; its schema is read anew.
    """
    connection.execute("PRAGMA writable_schema = ON")
    try:
        listed = ", ".join(f"'{name}'" for name in sorted(names()))
        connection.execute(f"DELETE FROM sqlite_master WHERE name IN ({listed}) OR tbl_name IN ({listed})")
    finally:
        connection.execute("PRAGMA writable_schema = RESET")
