"""The projections as SQL: their tables and indexes, and how a row is put in. SPEC section 7.

They may be dropped and made again at any time, so their shape is no part of the schema version: where it is not what
this program expects, they are rebuilt.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import lru_cache

from ...domain.projections import TABLES, Column, Row

UNSETTLED = (
    "cleared_by IS NULL AND (outcome_event_id IS NULL"
    " OR (effect = 'unknown' AND (attestation IS NULL OR attestation = 'over')))"
)
"""Which operations `OperationViews.unsettled` lists: also the condition of the index that finds them."""
NEWEST_AT = "COALESCE(head_admitted_at, opened_at, '')"
OPEN_RUN = "ended_event_id IS NULL AND abandoned_by IS NULL"
OPEN_PERMISSION = "decided_event_id IS NULL AND closed_event_id IS NULL"

_INDEXES = (
    f"CREATE INDEX sessions_newest ON sessions ({NEWEST_AT}, session_id)",
    "CREATE INDEX runs_of_session ON runs (session_id, admitted_sequence)",
    f"CREATE INDEX runs_open ON runs (session_id) WHERE {OPEN_RUN}",
    f"CREATE INDEX operations_unsettled ON operations (session_id, operation_id) WHERE {UNSETTLED}",
    f"CREATE INDEX permissions_open ON permissions (session_id) WHERE {OPEN_PERMISSION}",
    "CREATE INDEX continuations_of_boundary ON continuations (boundary_digest)",
    "CREATE INDEX continuations_to_run ON continuations (target_run_id)",
    "CREATE INDEX continuations_of_session ON continuations (session_id, claimed_at)",
)


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Names of the projections' tables and indexes."""
    return frozenset(TABLES) | frozenset(statement.split()[2] for statement in _INDEXES)


def table_statement(name: str, *, database: str = "main") -> str:
    """The statement that makes a projection's table."""
    table = TABLES[name]
    columns = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
    return f"CREATE TABLE {database}.{name} ({columns}, PRIMARY KEY ({', '.join(table.key)})) WITHOUT ROWID"


def statements() -> tuple[str, ...]:
    """Everything that makes empty projections."""
    return (*(table_statement(name) for name in TABLES), *_INDEXES)


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
    unknown = [column for column in columns if column not in TABLES[table].columns]
    if unknown:
        raise ValueError(f"projection {table} has no columns {unknown}")
    key = TABLES[table].key
    rest = [f"{column} = excluded.{column}" for column in columns if column not in key]
    action = f"UPDATE SET {', '.join(rest)}" if rest else "NOTHING"
    places = ", ".join("?" * len(columns))
    return (
        f"INSERT INTO {database}.{table} ({', '.join(columns)}) VALUES ({places})"
        f" ON CONFLICT ({', '.join(key)}) DO {action}"
    )


def upsert(row: Row, *, database: str = "main") -> tuple[str, tuple[Column, ...]]:
    """The statement that puts a row in, and its values: columns that the row does not name stay as they are."""
    return _upsert(row.table, tuple(row.values), database), tuple(row.values.values())


def drop_statements(connection: sqlite3.Connection) -> Iterable[str]:
    """What removes the projections that are there, whatever their shape."""
    rows = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'index')").fetchall()
    for kind in ("index", "table"):
        yield from (f'DROP {kind} "{name}"' for found, name in rows if found == kind and name in names())
