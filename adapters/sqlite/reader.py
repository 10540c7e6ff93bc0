"""Consistent views of the streams. Reading changes no byte of the database or its WAL. SPEC sections 6 and 20."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from pathlib import Path

from ...domain.errors import (
    StoreDamaged,
    StoreError,
    StoreGone,
    StoreMissing,
    StoreUnavailable,
    StoreUnreadable,
    StoreVersionOlder,
)
from ...domain.identifiers import EventId, RunId, run_stream
from ...domain.sealing import StoredRecord
from ...domain.unique_ids import IdKind
from ...ports.event_store import EventReader, Location, Standing
from ...ports.store_keeping import StoreCondition, Trust
from . import schema
from .anchor import Anchor
from .anchor_record import AnchorReading, AnchorRecord, NoAnchor
from .condition import judge
from .connection import close_quietly, connect_for_reading
from .errors import translated
from .event_rules import SEALING
from .peek import require_not_cut, require_not_foreign
from .place import FileIdentity, Place
from .position import newest

_READ = (
    "SELECT originator_version, topic, state FROM stored_events"
    " WHERE originator_id = ? AND originator_version > ? ORDER BY originator_version LIMIT ?"
)
_LAST = (
    "SELECT originator_version, topic, state FROM stored_events"
    " WHERE originator_id = ? ORDER BY originator_version DESC LIMIT 1"
)
_LOCATE = (
    "SELECT originator_id, originator_version FROM unique_ids"
    f" JOIN stored_events ON stored_events.rowid = unique_ids.event WHERE id = ? AND kind = '{IdKind.EVENT}'"
)
_ADMISSION = "SELECT generation FROM admissions WHERE run_id = ?"
_NEWEST_OF = (
    "SELECT rowid, topic, EXISTS (SELECT 1 FROM sealed_streams WHERE stream = originator_id) FROM stored_events"
    " WHERE originator_id = ? ORDER BY originator_version DESC LIMIT 1"
)
_UNSEALED = (
    "SELECT 1 FROM sealed_streams WHERE stream = ? AND NOT EXISTS"
    " (SELECT 1 FROM stored_events WHERE originator_id = stream AND topic = sealed_by)"
)
_BETWEEN = "SELECT COUNT(*) FROM stored_events WHERE rowid > ? AND rowid <= ?"
_LIMIT_MAX = 10_000
GAP_EVENTS_MAX = 1_000
"""How many rows behind a run's newest event are looked at for one that is missing; `verify` looks at all."""
_IDLE_MAX = 8
OPENING_TRIES = 4
OPENING_WAIT_SECONDS = 0.05


def _records(stream: str, rows: list[tuple[object, object, object]]) -> list[StoredRecord]:
    """Rows as records; whatever damage made of their types is left for `unseal` to name."""
    if rows:
        versions, topics, states = zip(*rows, strict=True)
        if (set(map(type, versions)), set(map(type, topics)), set(map(type, states))) == ({int}, {str}, {bytes}):
            record = partial(tuple.__new__, StoredRecord)  # what the class itself would call, and at once
            return list(map(record, zip(repeat(stream), versions, topics, states)))
    return [
        StoredRecord(
            stream,
            version if isinstance(version, int) else 0,
            topic if isinstance(topic, str) else "",
            state if isinstance(state, bytes) else b"",
        )
        for version, topic, state in rows
    ]


class SqliteReader(EventReader):
    """One view, over a connection whose transaction has begun."""

    def __init__(
        self, connection: sqlite3.Connection, place: Place, here: FileIdentity | None, anchor: AnchorReading
    ) -> None:
        self.connection = connection
        self._place = place
        self._here = here
        self._anchor = anchor
        self._condition: StoreCondition | None = None
        self._without_gap = (0, 0)

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        """See `EventReader`."""
        if not 1 <= limit <= _LIMIT_MAX:
            raise ValueError(f"limit must be 1 to {_LIMIT_MAX}, not {limit}")
        with translated(self._place.database, f"read {stream} in"):
            rows = self.connection.execute(_READ, (stream, after, limit)).fetchall()
        return _records(stream, rows)

    def last(self, stream: str) -> StoredRecord | None:
        """See `EventReader`."""
        with translated(self._place.database, f"read {stream} in"):
            rows = self.connection.execute(_LAST, (stream,)).fetchall()
        return _records(stream, rows)[0] if rows else None

    def locate(self, event_id: EventId) -> Location | None:
        """See `EventReader`."""
        with translated(self._place.database, "look for an event in"):
            row = self.connection.execute(_LOCATE, (event_id,)).fetchone()
        return None if row is None else Location(*row)

    def standing(self, run_id: RunId) -> Standing:
        """See `EventReader`."""
        condition = self.condition()
        with translated(self._place.database, "look for a run in"):
            row = self.connection.execute(_ADMISSION, (run_id,)).fetchone()
        copied, behind = condition.trust.copied, condition.trust.end_may_be_lost
        gap = self._gap_behind(run_id, condition.events)
        return Standing(None if row is None else row[0], condition.generation, behind, copied, gap)

    def _gap_behind(self, run_id: RunId, newest_row: int) -> bool:
        """Whether an event is missing behind the newest one of a run without end: rows have no gaps (ADR 0050).

        What the view has seen to be whole is not looked at again, so many runs cost what lies between them.
        """
        stream = run_stream(run_id)
        with translated(self._place.database, f"look for the end of {stream} in"):
            found = self.connection.execute(_NEWEST_OF, (stream,)).fetchone()
            if found is None or found[1] in SEALING:
                return False
            if found[2]:
                return self.connection.execute(_UNSEALED, (stream,)).fetchone() is not None
            first, last = found[0], min(found[0] + GAP_EVENTS_MAX, newest_row)
            begun, whole = self._without_gap
            if not begun <= first <= whole:
                begun = whole = first
            if last > whole:
                (count,) = self.connection.execute(_BETWEEN, (whole, last)).fetchone()
                if count != last - whole:
                    return True
            self._without_gap = (begun, max(whole, last))
            return False

    def condition(self) -> StoreCondition:
        """How the store stands in this view."""
        if self._condition is None:
            with translated(self._place.database, "read the control rows of"):
                self._condition = judge(self.connection, self._place, self._here, self._anchor)
        return self._condition


class Readers:
    """Hands out views; thread-safe. Connections are kept for the next view.

    Args:
        place: the store's files.
        busy_timeout_seconds: how long to wait while another process recovers the WAL.
        require: makes sure that the database is one whose views are of use.
    """

    def __init__(
        self,
        place: Place,
        busy_timeout_seconds: float,
        require: Callable[[sqlite3.Connection, Path], object] = schema.require_store,
    ) -> None:
        self._require = require
        self._place = place
        self._busy_timeout_seconds = busy_timeout_seconds
        self._anchor = Anchor(place.anchor, busy_timeout_seconds)
        self._idle: list[tuple[sqlite3.Connection, FileIdentity]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    @contextmanager
    def view(self) -> Iterator[SqliteReader]:
        """Open a view; the anchor is read before it, so a commit in between can only put the store ahead of it.

        Raises:
            StoreMissing: there is no database, and never was one that kept facts.
            StoreGone: there is no database, although its anchor says that it kept facts.
            StoreUnavailable, StoreDamaged, StoreVersionNewer, StoreVersionOlder: it cannot be read.
        """
        if self._closed or os.getpid() != self._process:
            raise StoreUnavailable(f"the store {self._place.database} was closed, or opened by another process")
        anchor = self._anchor.read()
        here = self._place.identity()
        if here is None and anchor is not NoAnchor.MISSING:
            anchor = self._anchor.read(unlocked=True)
            here = self._place.identity()
        if here is None:
            raise self._not_there(anchor)
        connection = self._begun(here, anchor)
        reusable = False
        try:
            yield SqliteReader(connection, self._place, here, anchor)
            reusable = True
        finally:
            self._give_back(connection, here, reusable=reusable)

    def _not_there(self, anchor: AnchorReading) -> StoreError:
        database = self._place.database
        if isinstance(anchor, AnchorRecord) and anchor.counter > 0:
            return StoreGone(f"{database} is gone: its anchor says that it kept facts")
        if anchor is NoAnchor.MISSING:
            return StoreMissing(f"there is no store at {database}")
        return StoreMissing(
            f"the store at {database} is only just being made, or was not finished: it has an anchor only"
        )

    def close(self) -> None:
        """Close what is idle; idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            close_quietly(connection)

    def _begun(self, here: FileIdentity, anchor: AnchorReading) -> sqlite3.Connection:
        """A connection in a transaction of this moment.

        When the last of other processes closes the store, SQLite takes its WAL away; whoever opens it at that very
        instant is told that it cannot be read. That passes, so it is tried again before it is believed; but who has
        waited for a lock as long as was asked for waits no second time.
        """
        deadline = time.monotonic() + max(self._busy_timeout_seconds, OPENING_TRIES * OPENING_WAIT_SECONDS)
        for tries_left in range(OPENING_TRIES - 1, -1, -1):
            connection: sqlite3.Connection | None = None
            try:
                connection = self._take(here, anchor)
                with translated(self._place.database, "read"):
                    connection.execute("BEGIN")
                    newest(connection)  # the view is of this moment
                return connection
            except BaseException as error:
                if connection is not None:
                    self._give_back(connection, here, reusable=False)
                passes = isinstance(error, StoreUnavailable) and not isinstance(error, StoreVersionOlder)
                if not tries_left or not passes or time.monotonic() >= deadline:
                    raise
                time.sleep(OPENING_WAIT_SECONDS)
        raise AssertionError("the last try raises")

    def _take(self, here: FileIdentity, anchor: AnchorReading) -> sqlite3.Connection:
        with self._lock:
            while self._idle:
                connection, opened = self._idle.pop()
                if opened == here:
                    return connection
                close_quietly(connection)  # another file took the name
        with self._as_a_whole(), translated(self._place.database, "open"):
            has_anchor = anchor is not NoAnchor.MISSING
            require_not_cut(self._place, has_anchor=has_anchor)
            require_not_foreign(self._place, has_anchor=has_anchor)
            connection = connect_for_reading(self._place, self._busy_timeout_seconds)
            try:
                self._require(connection, self._place.database)
            except StoreVersionOlder as older:
                condition = judge(connection, self._place, here, anchor)
                close_quietly(connection)
                distrust = None if condition.trust is Trust.OK else condition.detail
                raise StoreVersionOlder(older.found, older.supported, distrust) from older
            except BaseException:
                close_quietly(connection)
                raise
        return connection

    @contextmanager
    def _as_a_whole(self) -> Iterator[None]:
        """Damage that is met while a store is opened keeps all of it from being read."""
        try:
            yield
        except StoreDamaged as damage:
            raise StoreUnreadable(damage.detail) from damage

    def _give_back(self, connection: sqlite3.Connection, here: FileIdentity, *, reusable: bool) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            reusable = False
        with self._lock:
            if reusable and not self._closed and len(self._idle) < _IDLE_MAX:
                self._idle.append((connection, here))
                return
        close_quietly(connection)
