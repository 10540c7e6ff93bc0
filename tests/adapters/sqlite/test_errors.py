"""What SQLite and the system say, as callers know it."""

from __future__ import annotations

import errno
import resource
import sqlite3
from pathlib import Path

import pytest
from eventsourcing.persistence import InterfaceError

from safepoint.adapters.sqlite.errors import store_error, translated
from safepoint.domain.errors import StoreDamaged, StoreError, StoreFull, StoreUnavailable

PATH = Path("/store.sqlite")


def raised(kind: type[sqlite3.Error], code: int | None, text: str = "something") -> sqlite3.Error:
    error = kind(text)
    if code is not None:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_BUSY), StoreUnavailable),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_BUSY_SNAPSHOT), StoreUnavailable),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_LOCKED), StoreUnavailable),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_FULL), StoreFull),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_READ), StoreUnavailable),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_READONLY), StoreUnavailable),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_CANTOPEN), StoreUnavailable),
        (raised(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT), StoreDamaged),
        (raised(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT_INDEX), StoreDamaged),
        (raised(sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB), StoreDamaged),
        (raised(sqlite3.OperationalError, sqlite3.SQLITE_ERROR, "no such table: x"), StoreDamaged),
        (raised(sqlite3.OperationalError, None, "Could not decode to UTF-8 column 'topic'"), StoreDamaged),
        (raised(sqlite3.ProgrammingError, None, "Cannot operate on a closed database."), StoreUnavailable),
        (OSError(errno.ENOSPC, "no space"), StoreFull),
        (OSError(errno.EDQUOT, "quota"), StoreFull),
        (OSError(errno.EFBIG, "too large"), StoreFull),
        (OSError(errno.EACCES, "denied"), StoreUnavailable),
        (OSError(errno.EROFS, "read-only"), StoreUnavailable),
    ],
)
def test_each_foreign_error_has_one_meaning(error: Exception, expected: type[StoreError]) -> None:
    found = store_error(error, PATH, "write to")
    assert type(found) is expected
    assert str(PATH) in found.detail


def test_a_failed_write_is_full_where_the_file_may_grow_no_more(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"x" * 4096)
    error = raised(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_WRITE)
    assert type(store_error(error, path, "write to")) is StoreUnavailable
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        assert type(store_error(error, path, "write to")) is StoreFull
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_error_that_the_library_wrapped_is_unwrapped() -> None:
    wrapped = InterfaceError("wrapped")
    wrapped.__cause__ = raised(sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB)
    assert type(store_error(wrapped, PATH, "open")) is StoreDamaged


def test_the_cause_is_kept() -> None:
    error = raised(sqlite3.OperationalError, sqlite3.SQLITE_BUSY)
    with pytest.raises(StoreUnavailable) as caught, translated(PATH, "read"):
        raise error
    assert caught.value.__cause__ is error


def test_errors_of_callers_pass_through() -> None:
    with pytest.raises(KeyError), translated(PATH, "read"):
        raise KeyError("mine")
