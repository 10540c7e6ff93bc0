"""Making a store: the anchor first, then the database, which appears under its name complete or not at all. SPEC
section 6.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path

from ...domain.errors import StoreDamaged, StoreGone
from . import position, projection_tables, schema
from .anchor import Anchor
from .anchor_record import AnchorRecord, NoAnchor
from .connection import close_quietly, journal_files
from .control_rows import checksum
from .errors import translated
from .place import Place


def create_if_missing(place: Place, anchor: Anchor, on_point: Callable[[str], None]) -> None:
    """Make an empty store where there is no database; one process at a time.

    A database without its anchor is left alone: it is a store that cannot vouch for its tail.

    Raises:
        StoreGone: an anchor says that there was a database.
        StoreDamaged: a WAL is there without its database.
        StoreUnavailable, StoreFull: it could not be made; at most an anchor that says "nothing yet" is left.
    """
    if place.identity() is not None:
        return
    if place.wal.exists():
        raise StoreDamaged(f"{place.wal} is there without its database {place.database}; nothing was changed")
    with translated(place.database, "make"), anchor.exclusively() as held:
        if place.identity() is not None:
            return
        said = held.read()
        if said is NoAnchor.UNREADABLE or (isinstance(said, AnchorRecord) and said.counter > 0):
            raise StoreGone(
                f"the database {place.database} is gone: its anchor {place.anchor} says that it kept facts."
                " Put it back, or remove the anchor to begin anew"
            )
        record = said if isinstance(said, AnchorRecord) else AnchorRecord(uuid.uuid4().hex, *position.FIRST)
        held.write(record)
        on_point("store.anchor_made")
        _make_database(place, record, on_point)


def _make_database(place: Place, record: AnchorRecord, on_point: Callable[[str], None]) -> None:
    unfinished = Path(f"{place.database}.unfinished")
    try:
        for leftover in (unfinished, *journal_files(unfinished)):
            leftover.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        _fill(unfinished, place, record, on_point)
        os.rename(unfinished, place.database)  # noqa: PTH104 - keeps the inode that was recorded
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    on_point("store.made")
    folder = os.open(place.database.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(database: Path, place: Place, record: AnchorRecord, on_point: Callable[[str], None]) -> None:
    found = database.stat()
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in (*schema.statements(), *projection_tables.statements()):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
        said = (record.store_id, 1, *place.identity_of(database, found))
        connection.execute(
            "INSERT INTO store_control VALUES (1, ?, ?, ?, ?, ?, ?)", (*said, checksum("store_control", *said))
        )
        connection.execute(position.INSERT, position.FIRST)
        connection.execute("COMMIT")
        on_point("store.filled")
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        close_quietly(connection)
