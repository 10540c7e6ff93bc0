"""Taking a database out of its place: nobody has it open, and it stays whole under another name. Field report r3-085.

Killed at any instant, the store is there or its anchor says that it is gone, and what was put aside is complete.
"""

from __future__ import annotations

import fcntl
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...domain.errors import StoreUnavailable
from ...ports.store_backup import StoreInUse
from .connection import journal_files
from .place import Place

_SQLITE_LOCK_BYTES = (512, 0x40000000)
"""Length and start of the bytes that SQLite locks; every connection to a WAL database keeps one of them locked."""


@contextmanager
def exclusively(database: Path) -> Iterator[None]:
    """Hold SQLite's own exclusive lock, without opening the database: whoever opens it meanwhile waits.

    No byte changes, also in a database that is damaged. The process must have no connection to it: closing one would
    drop the lock.

    Raises:
        StoreInUse: somebody has it open.
    """
    try:
        descriptor = os.open(database, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, *_SQLITE_LOCK_BYTES)
        except (BlockingIOError, PermissionError):
            raise StoreInUse(f"the store is in use: another program has {database} open") from None
        yield
    finally:
        os.close(descriptor)


def put_aside(place: Place, at: str) -> Path | None:
    """Give the database, its journals and a copy of its anchor another name, complete before anything is removed.

    The anchor stays: until the next database is there, it says that there was one. The database's own name stays too,
    for the next one to take in one step; its journals are gone, so that they never mix with the next one.

    Returns:
        The other name, or None where there was nothing.
    """
    aside = Path(f"{place.database}.before-{''.join(filter(str.isalnum, at))}")
    there = [path for path in (place.database, *journal_files(place.database)) if os.path.lexists(path)]
    kept = [path for path in there if path == place.database or _holds_something(path)]
    if not kept:
        for path in there:
            path.unlink()
        return None
    if any(aside.parent.glob(f"{glob.escape(aside.name)}*")):
        raise StoreUnavailable(f"{aside} is there already, so that {place.database} cannot be put aside")
    try:
        for path in kept:
            os.link(path, f"{aside}{path.name.removeprefix(place.database.name)}")
        if place.anchor.exists() and place.anchor.stat().st_size:
            _copy_anchor(place.anchor, Path(f"{aside}.anchor"))
        for path in there:
            if path != place.database:
                path.unlink()
    except BaseException:
        put_back(place, aside)
        raise
    return aside


def put_back(place: Place, aside: Path | None) -> None:
    """Undo `put_aside`."""
    if aside is None:
        return
    for path in (place.database, *journal_files(place.database)):
        other = Path(f"{aside}{path.name.removeprefix(place.database.name)}")
        if os.path.lexists(path):
            other.unlink(missing_ok=True)
        elif os.path.lexists(other):
            other.replace(path)
    Path(f"{aside}.anchor").unlink(missing_ok=True)


def _holds_something(journal: Path) -> bool:
    """The shared-memory index is made again from the WAL; a journal without bytes is what readers leave behind."""
    return not journal.name.endswith("-shm") and journal.stat().st_size > 0


def _copy_anchor(anchor: Path, target: Path) -> None:
    """A file of its own: anchors are written in place."""
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, anchor.read_bytes())
    finally:
        os.close(descriptor)
