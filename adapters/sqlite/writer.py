"""The one connection that writes, its transactions, and the anchor after each. SPEC sections 6 and 7.

Whenever the outcome of a COMMIT is not known, or the anchor could not be raised, the connection is closed; before the
next write the store, its anchor and its place are looked at again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from eventsourcing.sqlite import SQLiteApplicationRecorder

from ...domain.errors import StoreBehindAnchor, StoreFull, StoreUnavailable
from ...ports.event_store import OwnerGuard
from .anchor import Anchor
from .anchor_raising import AnchorForRaising
from .anchor_record import AnchorReading, AnchorRecord
from .condition import control_of, require_writable
from .connection import WAL_PAGES, WriterDatastore, close_quietly, connect_for_reading
from .errors import store_error, translated
from .links import Links
from .log_room import LogRoom
from .place import Place
from .position import Position, newest, position_at
from .reader import Readers
from .statement_cursor import StatementCursor


class Writer:
    """Begins transactions, one at a time; thread-safe.

    Args:
        place: the store's files.
        readers: look at the store before the connection is opened.
        busy_timeout_seconds: how long to wait for other processes that write.
        on_point: told at each instant of a transaction, for tests that kill.
    """

    def __init__(
        self, place: Place, readers: Readers, busy_timeout_seconds: float, on_point: Callable[[str], None] | None
    ) -> None:
        self.place = place
        self.on_point = on_point
        self._readers = readers
        self._busy_timeout_seconds = busy_timeout_seconds
        self._anchor = AnchorForRaising(Anchor(place.anchor, busy_timeout_seconds))
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._datastore: WriterDatastore | None = None
        self._closed = False
        self.links = Links()
        self.owners: set[OwnerGuard] = set()
        self._log_room = LogRoom(place.wal, WAL_PAGES)
        self.cursor: StatementCursor
        self.insert_event = ""
        self._connection: sqlite3.Connection
        self._cursor: sqlite3.Cursor
        self._device_and_inode: tuple[int, int]
        self._store_id = ""
        self._agreed: AnchorRecord | None = None
        self._position: Position
        self._data_version: int | None = None
        self._left: str | None = None

    def close(self) -> None:
        """Close the connection; idempotent."""
        with self._lock:
            self._closed = True
            self.drop()

    def begin(self) -> tuple[sqlite3.Cursor, Position]:
        """Wait for the lock, begin, and make sure that the store may be written. Ends with `commit`, `rollback` or
        `drop`.

        Raises:
            StoreNotAdopted: the store is behind its anchor, or copied.
            StoreUnavailable: it is closed, locked or was replaced.
        """
        if os.getpid() != self._process:
            raise StoreUnavailable(f"the store {self.place.database} was opened by another process")
        self._lock.acquire()
        try:
            if self._closed:
                raise StoreUnavailable(f"the store {self.place.database} was closed")
            if self._datastore is None:
                self._open()
            anchor = self._anchor.read()
            if not self.place.is_still(self._device_and_inode):
                self.drop()
                raise StoreUnavailable(f"the database {self.place.database} was replaced while it was open")
            return self._begun(anchor)
        except BaseException:
            self._lock.release()
            raise

    def begin_anew(self) -> tuple[sqlite3.Cursor, Position]:
        """Undo what the present transaction did and begin another one; raises as `begin` does, and `end` follows."""
        self._undo()
        return self._begun(self._anchor.read())

    def _begun(self, anchor: AnchorReading) -> tuple[sqlite3.Cursor, Position]:
        cursor = self._cursor
        try:
            if self.on_point is not None:
                self.on_point("store.begin")
            cursor.execute("BEGIN IMMEDIATE")
            (version,) = cursor.execute("PRAGMA data_version").fetchone()
            if version != self._data_version:
                self._look_again(cursor, version)
            if anchor is not self._agreed and anchor != self._agreed:
                self._compare(cursor, self._position, anchor)
            if self._log_room.is_cut():
                raise self._left_for_good()
            self._log_room.make()
        except sqlite3.Error as error:
            self._undo()
            raise store_error(error, self.place.database, "write to") from error
        except BaseException:
            self._undo()
            raise
        return cursor, self._position

    def _look_again(self, cursor: sqlite3.Cursor, version: int) -> None:
        """Another connection has written since: look how far the store has come, and know no owner."""
        self._position = position_at(cursor, newest(cursor), self._position)
        self._data_version = version
        self._log_room.forget_length()
        self.owners.clear()

    def _compare(self, cursor: sqlite3.Cursor, position: Position, anchor: AnchorReading) -> None:
        """Make sure that the store is not behind an anchor that another process has moved on."""
        if (
            isinstance(anchor, AnchorRecord)
            and anchor.store_id == self._store_id
            and anchor.counter <= position.counter
            and position_at(cursor, anchor.counter, position).digest == anchor.digest
        ):
            self._agreed = anchor
            return
        self.drop()
        raise StoreBehindAnchor(f"{self.place.database} does not agree with its anchor; nothing was written")

    def _left_for_good(self) -> StoreBehindAnchor:
        """Somebody has cut the log under this connection. What stood in it may be lost, and SQLite would not look."""
        self._left = f"the log {self.place.wal} was cut while {self.place.database} was open; nothing is written to it"
        self._drop_without_checkpoint()
        return StoreBehindAnchor(self._left)

    def leave_a_cut_log(self) -> None:
        """Close the connection where somebody has cut the log; a checkpoint would bring zeros into the database."""
        with self._lock:
            if self._datastore is not None and self._log_room.is_cut():
                self._drop_without_checkpoint()

    def _drop_without_checkpoint(self) -> None:
        """The last one that closes a database makes a checkpoint, unless it may only read it."""
        keeper = connect_for_reading(self.place, self._busy_timeout_seconds)
        try:
            with suppress(sqlite3.Error):
                keeper.execute("PRAGMA application_id").fetchone()  # from now on it is one that has it open
            self.drop()
        finally:
            close_quietly(keeper)

    def forget(self) -> None:
        """Close the connection, because somebody else is about to write the store's control rows."""
        with self._lock:
            self.drop()

    @contextmanager
    def overwriting(self) -> Iterator[None]:
        """While this lasts, what is given up in the database is overwritten with zeros."""
        with self._lock:
            if self._datastore is None and not self._closed:
                self._open()
            self._overwrite(on=True)
        try:
            yield
        finally:
            with self._lock:
                self._overwrite(on=False)

    def _overwrite(self, *, on: bool) -> None:
        if self._datastore is not None:
            with translated(self.place.database, "write to"):
                self._connection.execute(f"PRAGMA secure_delete = {'ON' if on else 'OFF'}").fetchall()

    def empty_log(self) -> bool:
        """Bring the whole log into the database and cut it off; False where others read it at the moment."""
        with self._lock:
            if self._datastore is None:
                return False
            try:
                (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error:
                return False
            self._log_room.again()
            return bool(busy == 0)

    def end(self) -> None:
        """Let the next transaction begin."""
        self._lock.release()

    def rollback(self) -> None:
        """Undo everything since `begin`."""
        self._undo()

    def commit(self, cursor: sqlite3.Cursor, position: Position, *, kept_events: bool) -> None:
        """Make the transaction durable, then raise the anchor.

        Raises:
            StoreUnavailable: it is not known whether it became durable, or the anchor could not be raised.
            StoreFull: there was no room; nothing was written.
        """
        if self.on_point is not None:
            try:
                self.on_point("store.before_commit")
            except BaseException:
                self._undo()
                raise
        try:
            cursor.execute("COMMIT")
        except sqlite3.Error as error:
            self.drop()
            raise self._commit_failed(error, position if kept_events else None) from error
        except BaseException:
            self.drop()
            raise
        self.links.settle()
        if kept_events:
            self._raise_anchor(position)

    def _raise_anchor(self, position: Position) -> None:
        record = AnchorRecord(self._store_id, position.counter, position.digest)
        try:
            if self.on_point is not None:
                self.on_point("store.after_commit")
            self._anchor.raise_to(record)
            self._agreed, self._position = record, position
            if self.on_point is not None:
                self.on_point("store.after_anchor")
        except BaseException:
            self.drop()
            raise

    def _commit_failed(self, error: sqlite3.Error, position: Position | None) -> Exception:
        """What to say of a COMMIT that failed: full only where looking again shows that nothing was written."""
        translated_error = store_error(error, self.place.database, "write to")
        full = isinstance(translated_error, StoreFull)
        if full and position is not None:
            try:
                with self._readers.view() as view:
                    if newest(view.connection) < position.counter:
                        return translated_error
            except Exception as looking:  # noqa: BLE001 - not knowing is the answer
                error.add_note(f"looking again failed as well: {looking}")
        why = "there is no room left" if full else str(error)
        unknown = f"it is not known whether {self.place.database} kept the last commit: {why}"
        return StoreUnavailable(unknown, no_room=full)

    def _open(self) -> None:
        """Look at the store by reading alone; open it for writing only when it may be written."""
        if self._left is not None:
            raise StoreBehindAnchor(self._left)
        with self._readers.view() as view:
            require_writable(view.condition())
            control = control_of(view.connection)
            position = position_at(view.connection, newest(view.connection))
        with translated(self.place.database, "open"):
            found = self.place.database.stat()
        datastore = WriterDatastore(self.place, self._busy_timeout_seconds)
        try:
            with translated(self.place.database, "open"):
                self._connection = datastore.connection()._sqlite_conn  # noqa: SLF001 - transactions of our own
                self._cursor = self._connection.cursor()
                self.cursor = StatementCursor(self._cursor, self.on_point)
                self.insert_event = SQLiteApplicationRecorder(datastore).insert_events_statement
            self._anchor.read()
            self._anchor.raise_to(AnchorRecord(control.store_id, position.counter, position.digest))
        except BaseException:
            datastore.close()
            raise
        self._datastore, self._store_id, self._agreed = datastore, control.store_id, None
        self._position = position
        self._device_and_inode = (found.st_dev, found.st_ino)

    def _undo(self) -> None:
        self.links.undo()
        if self._datastore is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.drop()

    def drop(self) -> None:
        """Close the connection: what it knew is no longer trusted. The next transaction opens it anew."""
        datastore, self._datastore = self._datastore, None
        self.links = Links()
        self.owners = set()
        self._log_room.again()
        self._data_version = None
        self._anchor.close()
        if datastore is not None:
            with suppress(sqlite3.Error):
                datastore.close()
