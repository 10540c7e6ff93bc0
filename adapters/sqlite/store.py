"""One SQLite store: opening it for writing or for reading, and its parts by port. SPEC sections 3, 6 and 7."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from itertools import islice, takewhile
from typing import Any

from ...domain.errors import StoreDamaged, StoreFull, StoreUnavailable, StoreVersionOlder
from ...ports.session_owners import Ownership
from ...ports.store_keeping import StoreCondition, StoreKeeping, Trust
from . import adoption, schema
from .anchor import Anchor
from .control_rows import faults_of_control_rows
from .creation import create_if_missing
from .errors import store_error, translated
from .event_store import SqliteEventStore
from .forgetting import SqliteForgetting
from .id_rows import faults_of_id_rows
from .migrating import bring_forward, condition_of_older
from .pages import FAULTS_MAX, faults_of_pages
from .place import Place
from .position import faults_of_positions
from .projections import SqliteProjections
from .reader import Readers
from .session_owners import SqliteSessionOwners
from .views import SqliteViews
from .writer import Writer

BUSY_TIMEOUT_SECONDS = 5.0
_LIMIT_MAX = 10_000
_STREAMS = """WITH RECURSIVE names (name) AS (
    SELECT MIN(originator_id) FROM stored_events WHERE originator_id > ?
    UNION ALL SELECT (SELECT MIN(originator_id) FROM stored_events WHERE originator_id > names.name)
    FROM names WHERE names.name IS NOT NULL)
    SELECT name FROM names WHERE name IS NOT NULL LIMIT ?"""
_OWNED = """SELECT session_id, incarnation_id, epoch FROM session_owners
    WHERE incarnation_id IS NOT NULL AND session_id > ? ORDER BY session_id LIMIT ?"""


class SqliteStore(StoreKeeping):
    """A store in one database file. Made by `open_store` or `open_reader`.

    Attributes:
        events: the streams.
        owners: who may write which session.
        views: lists and pages.
        projections: rebuilding and comparing the views.
        forgetting: takes the content of sessions away.
    """

    def __init__(self, place: Place, busy_timeout_seconds: float, writer: Writer | None, readers: Readers) -> None:
        self._place = place
        self._busy_timeout_seconds = busy_timeout_seconds
        self._writer = writer
        self._readers = readers
        self.events = SqliteEventStore(readers, writer)
        self.owners = SqliteSessionOwners(place, readers, writer)
        self.views = SqliteViews(place, readers)
        self.projections = SqliteProjections(place, readers, writer)
        self.forgetting = SqliteForgetting(place, writer)

    def condition(self) -> StoreCondition:
        """See `StoreKeeping`; of an older version's store, too."""
        try:
            with self._readers.view() as view:
                return view.condition()
        except StoreVersionOlder:
            return condition_of_older(self._place, self._busy_timeout_seconds)

    def is_older(self) -> bool:
        """Tell whether an older version wrote it, and nobody has brought it forward."""
        readers = Readers(self._place, self._busy_timeout_seconds, schema.require_published)
        try:
            with readers.view() as view:
                return schema.version_of(view.connection) < schema.SCHEMA_VERSION
        finally:
            readers.close()

    def adopt(self, *, by: str, note: str, at: str) -> StoreCondition:
        """See `StoreKeeping`."""
        if self._writer is None:
            raise StoreUnavailable("the store was opened for reading")
        self._writer.forget()
        if self.is_older():
            bring_forward(self._place, self._busy_timeout_seconds, self._writer.on_point)
        adoption.adopt(self._place, self._readers, self._busy_timeout_seconds, adoption.Adoption(by, note, at))
        return self.condition()

    def streams(self, *, after: str = "", limit: int = 1000) -> Sequence[str]:
        """See `StoreKeeping`."""
        return [str(row[0]) for row in self._page(_STREAMS, after, limit)]

    def faults(self) -> Sequence[str]:
        """See `StoreKeeping`."""
        found: list[str] = []
        with self._readers.view() as view, translated(self._place.database, "read"):
            for part in (faults_of_pages, faults_of_positions, faults_of_id_rows, faults_of_control_rows):
                try:
                    found += islice(part(view.connection), FAULTS_MAX)
                except sqlite3.Error as error:
                    told = store_error(error, self._place.database, "read all of")
                    if not isinstance(told, StoreDamaged):
                        raise
                    found.append(told.detail)
        return found

    def owned_sessions(self, *, after: str = "", limit: int = 1000) -> Sequence[Ownership]:
        """See `StoreKeeping`."""
        return [Ownership(*row) for row in self._page(_OWNED, after, limit)]

    def close(self) -> None:
        """Release everything; idempotent."""
        self.events.close()

    def _page(self, sql: str, after: str, limit: int) -> list[tuple[Any, ...]]:
        if not 1 <= limit <= _LIMIT_MAX:
            raise ValueError(f"limit must be 1 to {_LIMIT_MAX}, not {limit}")
        with self._readers.view() as view, translated(self._place.database, "read"):
            rows = view.connection.execute(sql, (after, limit)).fetchall()
        befores = (after, *(row[0] for row in rows))
        good = [row for row, _ in takewhile(lambda pair: _is_above(*pair), zip(rows, befores, strict=False))]
        if rows and not good:
            raise StoreDamaged(f"{self._place.database} does not list its rows in order above {after!r}")
        return good


def _is_above(row: tuple[Any, ...], before: object) -> bool:
    """Whoever pages through names must come to an end, also where damage put them out of order."""
    name = row[0]
    return isinstance(name, str) and isinstance(before, str) and name > before


def open_store(
    path: str | os.PathLike[str],
    *,
    busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS,
    on_point: Callable[[str], None] | None = None,
) -> SqliteStore:
    """Open a store for writing; an empty one is made where there is no database, and one of an older version is
    brought forward. Nothing that is there is changed before it is known to be a store that may be written. A store
    that may only be read opens too, and refuses to be written.

    Args:
        path: the database file; its folder exists.
        busy_timeout_seconds: how long to wait for other processes, 0 or more.
        on_point: told at each instant of each transaction (`store.begin`, `store.statement:<n>`, `store.before_commit`,
            `store.after_commit`, `store.after_anchor`; `store.migration:<n>` instead of statements while an older store
            is brought forward); tests kill there.

    Raises:
        StoreUnavailable: the path names something else, or it could not be looked at.
        StoreDamaged: it is a damaged store.
        StoreBehindAnchor: the database is gone, although its anchor says that it kept facts.
        StoreVersionNewer: a newer version wrote it.
        StoreFull: there is no room to make it.
    """
    place = Place(path)
    create_if_missing(place, Anchor(place.anchor, busy_timeout_seconds), on_point or _ignore)
    readers = Readers(place, busy_timeout_seconds)
    store = SqliteStore(place, busy_timeout_seconds, Writer(place, readers, busy_timeout_seconds, on_point), readers)
    try:
        if store.condition().trust is Trust.OK:
            _make_present(store, place, busy_timeout_seconds, on_point)
    except BaseException:
        store.close()
        raise
    return store


def _make_present(
    store: SqliteStore, place: Place, busy_timeout_seconds: float, on_point: Callable[[str], None] | None
) -> None:
    """Bring a store that may be written to what this program reads and writes: its version, and its views."""
    try:
        as_expected = store.projections.are_as_expected()
    except StoreVersionOlder:
        bring_forward(place, busy_timeout_seconds, on_point)
        return
    if not as_expected:
        store.projections.rebuild()


def open_reader(path: str | os.PathLike[str], *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS) -> SqliteStore:
    """Open a store for reading alone: no byte of the database or its WAL can change, and everything that writes raises
    StoreUnavailable.

    Raises:
        StoreMissing: there is no store.
        StoreVersionOlder: an older version wrote it, and nobody has opened it for writing since.
        StoreUnavailable, StoreDamaged, StoreBehindAnchor, StoreVersionNewer: as `open_store`.
    """
    place = Place(path)
    readers = Readers(place, busy_timeout_seconds)
    store = SqliteStore(place, busy_timeout_seconds, None, readers)
    try:
        with readers.view() as view:
            view.condition()
    except StoreFull as full:  # of the index that SQLite makes beside the log: nothing was to be written
        store.close()
        raise StoreUnavailable(full.detail, no_room=True) from full
    except BaseException:
        store.close()
        raise
    return store


def _ignore(point: str) -> None:
    """Nobody is told."""
