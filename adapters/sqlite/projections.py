"""Rebuilding the projections from the events, and comparing them with what the events make. SPEC section 7."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ...domain.errors import StoreDamaged, StoreUnavailable
from ...domain.projection_rebuild import NoRows, bare_row_of, rows_of_record
from ...domain.projections import Column, Row
from ...domain.sealing import StoredRecord
from ...ports.store_keeping import ProjectionDifference, Projections, Rebuilt
from . import projection_tables
from .errors import is_damage, readable, translated
from .place import Place
from .projection_tables import WRITTEN, has_triggers, shows_the_same, sql_views, written_rows
from .reader import Readers
from .statement_cursor import StatementCursor
from .transaction import Transaction
from .writer import Writer

_EVENTS = "SELECT originator_id, originator_version, topic, state FROM stored_events ORDER BY rowid"
_COUNT = "SELECT COUNT(*) FROM stored_events"
_BATCH = 1000
_IS_THERE = "SELECT 1 FROM main.sqlite_master WHERE name = ?"


class SqliteProjections(Projections):
    """The projections of one store.

    Args:
        place: the store's files.
        readers: look.
        writer: begins transactions; None where the store was opened for reading.
    """

    def __init__(self, place: Place, readers: Readers, writer: Writer | None) -> None:
        self._place = place
        self._readers = readers
        self._writer = writer

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> Rebuilt:
        """See `Projections`."""
        if self._writer is None:
            raise StoreUnavailable("the store was opened for reading")
        try:
            with Transaction(self._writer) as transaction:
                return rebuild_in(transaction, progress)
        except StoreDamaged:  # it may be the pages of the views: SQLite cannot even drop them
            with Transaction(self._writer) as transaction:
                projection_tables.forget(transaction.raw.connection)
                return rebuild_in(transaction, progress)

    def are_as_expected(self) -> bool:
        """Tell whether the projections have the shape that this program reads and writes."""
        with self._readers.view() as view, translated(self._place.database, "look at the projections of"):
            return projection_tables.are_as_expected(view.connection)

    def differences(self) -> Iterator[ProjectionDifference]:
        """See `Projections`."""
        with self._readers.view() as view, translated(self._place.database, "compare the projections of"):
            connection = view.connection
            connection.text_factory = readable
            for name in WRITTEN:
                connection.execute(projection_tables.table_statement(name, database="temp"))
            for row in _rows(connection):
                connection.execute(*projection_tables.upsert(row, database="temp"))
            for name in WRITTEN:
                if connection.execute(_IS_THERE, (name,)).fetchone() is None or has_triggers(connection, name):
                    yield ProjectionDifference(name, (), None, None)
                    continue
                try:
                    yield from _compare(connection, name)
                except sqlite3.DatabaseError as error:
                    if not is_damage(error):
                        raise
                    yield ProjectionDifference(name, (), None, None)
            for name in sql_views():
                if not _is_as_made(connection, name):
                    yield ProjectionDifference(name, (), None, None)
            for name in WRITTEN:  # after an error the connection is closed, and they are gone with it
                connection.execute(f"DROP TABLE temp.{name}")
            connection.text_factory = str


class Statements(Protocol):
    """What a rebuild works with: a transaction that has begun."""

    @property
    def raw(self) -> sqlite3.Cursor:
        """Looks things up."""

    @property
    def cursor(self) -> StatementCursor:
        """Executes statements that change something."""


def rebuild_in(transaction: Statements, progress: Callable[[int, int], None] | None = None) -> Rebuilt:
    """Drop the projections and make them again inside a transaction; memory stays flat."""
    connection = transaction.raw.connection
    for statement in projection_tables.drop_statements(connection, projection_tables.TRIGGER, "view", "index"):
        transaction.cursor.execute(statement)
    for statement in projection_tables.thinning_statements(connection):
        while transaction.raw.execute(statement).rowcount > 0:
            pass
    for statement in (*projection_tables.drop_statements(connection, "table"), *projection_tables.statements()):
        transaction.cursor.execute(statement)
    (total,) = connection.execute(_COUNT).fetchone()
    done = rows = unreadable = 0
    for record in _records(connection):
        made, readable = _rows_or_bare(record)
        for row in made:
            transaction.raw.execute(*projection_tables.upsert(row))
        done, rows, unreadable = done + 1, rows + len(made), unreadable + (not readable)
        if progress is not None and done % _BATCH == 0:
            progress(done, total)
    if progress is not None:
        progress(done, total)
    return Rebuilt(done, rows, unreadable)


def _records(connection: sqlite3.Connection) -> Iterator[StoredRecord]:
    return map(StoredRecord._make, connection.execute(_EVENTS))


def _rows(connection: sqlite3.Connection) -> Iterator[Row]:
    for record in _records(connection):
        yield from _rows_or_bare(record)[0]


def _rows_or_bare(record: StoredRecord) -> tuple[Sequence[Row], bool]:
    """The rows of an event and True, or the bare row of its stream and False."""
    try:
        return rows_of_record(record, written_rows), True
    except (NoRows, TypeError):  # damage may have made anything of a column
        bare = bare_row_of(str(record.stream))
        return (() if bare is None else (bare,)), False


def _is_as_made(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a view over the events can be read, and shows what it should."""
    try:
        return shows_the_same(connection, name) and not has_triggers(connection, name)
    except sqlite3.DatabaseError as error:
        if is_damage(error) or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:  # of its statement
            return False
        raise


def _compare(connection: sqlite3.Connection, name: str) -> Iterator[ProjectionDifference]:
    """Walk both tables in the order of their key, as they are stored."""
    table = WRITTEN[name]
    query = f"SELECT {', '.join(table.columns)} FROM {{}}.{name} ORDER BY {', '.join(table.key)}"
    found, expected = (connection.execute(query.format(database)) for database in ("main", "temp"))
    width = len(table.key)

    def named(row: tuple[Column, ...] | None) -> Mapping[str, Column] | None:
        return None if row is None else dict(zip(table.columns, row, strict=True))

    left, right = next(found, None), next(expected, None)
    while left is not None or right is not None:
        if left == right:
            left, right = next(found, None), next(expected, None)
            continue
        if right is None or (left is not None and _order(left[:width]) < _order(right[:width])):
            assert left is not None
            yield ProjectionDifference(name, left[:width], named(left), None)
            left = next(found, None)
        elif left is None or _order(right[:width]) < _order(left[:width]):
            yield ProjectionDifference(name, right[:width], None, named(right))
            right = next(expected, None)
        else:
            yield ProjectionDifference(name, left[:width], named(left), named(right))
            left, right = next(found, None), next(expected, None)


def _order(key: tuple[object, ...]) -> tuple[tuple[int, Any], ...]:
    """The order in which SQLite stores keys, also of types that only damage makes."""
    kinds = {type(None): 0, int: 1, float: 1, str: 2, bytes: 3}
    return tuple((kinds[type(value)], 0 if value is None else value) for value in key)
