"""Copies a store into one file of its own, through SQLite's backup: a consistent view, while others write.

The copy's control row names no file, so that it is foreign wherever it is put, whatever inode it gets. SPEC section 6.
The copy of an older version's store is one of the present version; the store itself stays as it is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...ports.store_backup import StoreCopy
from .condition import control_of
from .connection import close_quietly, journal_files
from .control_rows import checksum
from .errors import translated
from .migrating import migrate_in
from .position import newest, position_at
from .reader import Readers

_NO_FILE = ("copy", "copy", None)
_OF_NO_FILE = "UPDATE store_control SET device = ?, inode = ?, boot_id = ?, checksum = ?"


@contextmanager
def copied(readers: Readers, target: Path) -> Iterator[StoreCopy]:
    """Make a copy under an unfinished name; it is removed at the end of the block, unless it was given another name.

    Args:
        readers: look at the store, which may be of an older version.
        target: does not exist, or is what a killed copier left.

    Raises:
        StoreError: the store could not be read, or the copy not written.
    """
    try:
        yield _copy(readers, target)
    finally:
        for leftover in (target, *journal_files(target)):
            leftover.unlink(missing_ok=True)


def _copy(readers: Readers, target: Path) -> StoreCopy:
    with readers.view() as view, translated(target, "write the copy"):
        control, events = control_of(view.connection), newest(view.connection)
        digest = position_at(view.connection, events).digest
        for leftover in (target, *journal_files(target)):
            leftover.unlink(missing_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(target, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            view.connection.backup(connection)
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, which is looked at without making others
            connection.execute("BEGIN IMMEDIATE")
            migrate_in(connection, target)
            said = checksum("store_control", control.store_id, control.generation, *_NO_FILE)
            connection.execute(_OF_NO_FILE, (*_NO_FILE, said))
            connection.execute("COMMIT")
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        finally:
            close_quietly(connection)
        _sync(target)
        return StoreCopy(control.store_id, events, digest, target.stat().st_size, None if found == "ok" else found)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in a file's folder durable."""
    _sync(path.parent)
