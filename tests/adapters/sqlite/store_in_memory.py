"""The bytes of a store, looked at without files: so quick that every byte of one can be flipped in turn.

What looks is the product's own: its reader, its rules, and the whole of `verify`. Only where the bytes come from
differs, so a sample of the same flips is looked at through files and the program, too, and must come to the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from safepoint.adapters.sqlite.anchor import Anchor
from safepoint.adapters.sqlite.connection import close_quietly
from safepoint.adapters.sqlite.errors import translated
from safepoint.adapters.sqlite.place import Place
from safepoint.adapters.sqlite.position import newest
from safepoint.adapters.sqlite.projection_tables import names as names_of_views
from safepoint.adapters.sqlite.reader import Readers, SqliteReader
from safepoint.adapters.sqlite.store import SqliteStore
from safepoint.application.verify_store import Verification, VerifyStore
from safepoint.domain.errors import StoreError

_JOURNAL = slice(18, 20)
"""Where the header says that there may be a WAL, which memory has not."""


class MemoryReaders(Readers):
    """Hands out views of bytes, as they are, in place of a file that stands there.

    Args:
        place: the file and its anchor, undamaged: which file it is, and how far it had come.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place, 0.0)
        self._here = place.identity()
        self._said = Anchor(place.anchor, 0.0).read()
        self._connection: sqlite3.Connection | None = None

    def look_at(self, content: bytes) -> sqlite3.Connection:
        """Take bytes as the database."""
        self.close()
        self._closed = False
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.deserialize(content[: _JOURNAL.start] + b"\x01\x01" + content[_JOURNAL.stop :])
        return self._connection

    @contextmanager
    def view(self) -> Iterator[SqliteReader]:
        """A view of the bytes that were taken last; whether they are a store at all is asked each time."""
        connection = self._connection
        assert connection is not None
        with self._as_a_whole(), translated(self._place.database, "open"):
            connection.execute("PRAGMA cell_size_check = ON")
            self._require(connection, self._place.database)
        with translated(self._place.database, "read"):
            connection.execute("BEGIN")
            newest(connection)
        try:
            yield SqliteReader(connection, self._place, self._here, self._said)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Forget the bytes."""
        super().close()
        if self._connection is not None:
            close_quietly(self._connection)
            self._connection = None


class StoreInMemory:
    """Verifies bytes, and reads all that SQLite can read of them."""

    def __init__(self, place: Place) -> None:
        self._readers = MemoryReaders(place)
        self._store = SqliteStore(place, 0.0, None, self._readers)
        self._verify = VerifyStore(self._store.events, self._store, self._store.owners, self._store.projections)

    def verify(self, content: bytes) -> Verification | StoreError:
        """What `verify` finds, or what it raises."""
        self._readers.look_at(content)
        try:
            return self._verify()
        except StoreError as error:
            return error

    def content(self, content: bytes) -> object:
        """The schema, all rows of all tables, and what SQLite finds wrong; or that it cannot be read.

        The shape of a view is not in it: one of another shape is made again when the store is opened for writing.
        """
        raw = self._readers.look_at(content)
        raw.text_factory = bytes  # a text that is none any more is content, too
        try:
            made = raw.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
            names = [name.decode() for kind, name, *_ in made if kind == b"table"]
            rows = [raw.execute(f'SELECT * FROM "{name}"').fetchall() for name in names]
            views = {name.encode() for name in names_of_views()}
            rules = [one for one in made if views.isdisjoint(one[1:3])]  # neither by its name nor by its table's
            return rules, rows, raw.execute("PRAGMA integrity_check").fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return str(error)

    def close(self) -> None:
        """Release everything."""
        self._store.close()


def is_noticed(found: Verification | StoreError) -> bool:
    """Whether `verify` says that something is not what was written."""
    return isinstance(found, StoreError) or not found.sound
