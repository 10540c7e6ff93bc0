"""Raw errors of sqlite3 and the file system, as the errors that callers know. The only place that reads their codes."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import stat
from pathlib import Path
from types import TracebackType

from eventsourcing.persistence import PersistenceError

from ...domain.errors import (
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreObstructed,
    StoreUnavailable,
)

_ROOM_BYTES_MIN = 1024 * 1024
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_WRITE_FAILED = {
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_ALLOWED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_OBSTRUCTED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}
_FOREIGN = (sqlite3.Error, sqlite3.Warning, PersistenceError, OSError, UnicodeDecodeError)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class translated:  # noqa: N801 (read as what it does; a class, because a generator costs as much as a short statement)
    """Raise what goes wrong inside as a `StoreError`, with its cause.

    Args:
        path: the database.
        doing: what was being done, for the sentence: "cannot <doing> <path>".
    """

    __slots__ = ("_doing", "_path")

    def __init__(self, path: Path, doing: str) -> None:
        self._path = path
        self._doing = doing

    def __enter__(self) -> None:
        """Nothing has gone wrong yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, _FOREIGN):
            raise store_error(error, self._path, self._doing) from error


def store_error(error: Exception, path: Path, doing: str) -> StoreError:
    """The error that callers know for a foreign one."""
    if isinstance(error, PersistenceError) and isinstance(error.__cause__, Exception):
        return store_error(error.__cause__, path, doing)
    sentence = f"cannot {doing} {path}: {error}"
    if isinstance(error, UnicodeDecodeError):  # a name in the schema, or what SQLite says of it, is no text any more
        return StoreDamaged(sentence)
    if isinstance(error, OSError):
        return StoreFull(sentence) if error.errno in _NO_ROOM else StoreUnavailable(sentence)
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return StoreDamaged(sentence) if "decode to UTF-8" in str(error) else StoreUnavailable(sentence)
    if code == sqlite3.SQLITE_FULL or (code in _WRITE_FAILED and _no_room_left(path)):
        return StoreFull(f"cannot {doing} {path}: there is no room left")
    primary = code & 0xFF
    if primary in _OBSTRUCTED and (what := _obstacle(path, code)) is not None:
        return StoreObstructed(f"cannot {doing} {path}: {what}")
    if primary in _NOT_ALLOWED and (why := _forbidden(path)) is not None:
        return StoreForbidden(f"cannot {doing} {path}: {why}")
    if primary in _DAMAGED:
        return StoreDamaged(sentence)
    if primary in _BUSY:
        return StoreUnavailable(f"cannot {doing} {path}: another process keeps it locked")
    if primary == sqlite3.SQLITE_ERROR:
        return StoreDamaged(f"{sentence} (its tables are not what they should be)")
    return StoreUnavailable(sentence)


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another connection holds what was asked for."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _BUSY


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether pages of the database are not what they should be."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_CORRUPT


def is_broken_rule(error: sqlite3.Error) -> bool:
    """Tell whether a rule of the schema refused a statement; its rules read events as JSON, so that can be one, too."""
    return isinstance(error, sqlite3.IntegrityError) or "malformed JSON" in str(error)


def _obstacle(path: Path, code: int) -> str | None:
    """What beside the database is not what SQLite has to find there, if anything."""
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return f"{path}-journal is beside it, and Safepoint leaves none: what another program has left half done"
    for suffix in ("-journal", "-wal", "-shm"):
        beside = Path(f"{path}{suffix}")
        try:
            mode = beside.lstat().st_mode
        except OSError:
            continue
        if stat.S_ISLNK(mode):
            return f"{beside} is a symbolic link, and SQLite follows none there"
        if not stat.S_ISREG(mode):
            return f"{beside} is no file"
    return None


def _forbidden(path: Path) -> str | None:
    """What this user may not do, where that is why; even looking makes a journal and its index beside the database."""
    if not os.access(path.parent, os.X_OK):
        return f"its folder {path.parent} may not be entered"
    if path.exists() and not os.access(path, os.R_OK):
        return "the file may not be read"
    if not os.access(path.parent, os.W_OK):
        return f"SQLite makes files beside it, also to look at it, and its folder {path.parent} may not be written"
    if path.exists() and not os.access(path, os.W_OK):
        return "the file may not be written"
    return None


def _no_room_left(path: Path) -> bool:
    """Whether a failed write failed for want of room: SQLite does not say, except for a full disk."""
    file_bytes_max, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if file_bytes_max != resource.RLIM_INFINITY:
        largest = max((_size(path), _size(Path(f"{path}-wal")), _size(Path(f"{path}-shm"))))
        if largest + _ROOM_BYTES_MIN > file_bytes_max:
            return True
    try:
        space = os.statvfs(path.parent)
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < _ROOM_BYTES_MIN or (space.f_files > 0 and space.f_favail == 0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def readable(text: bytes) -> str:
    """A text of a view, for a connection to read it by: one that damage made unreadable keeps no row beside it back."""
    return text.decode("utf-8", "replace")
