"""A look at a file's header before SQLite opens it: even reading a WAL database leaves files beside it.

The connection is `immutable`, so it takes no lock and makes no file, and it sees no WAL: it says whose database it is,
and never what is in it. Reading the file without SQLite would drop the locks that this process holds on it.
"""

from __future__ import annotations

import sqlite3

from ...domain.errors import StoreDamaged, StoreUnavailable, StoreUnusable, StoreVersionNewer
from . import schema
from .connection import close_quietly, connect
from .place import Place

_HEADER_BYTES = 100


def require_not_cut(place: Place, *, has_anchor: bool) -> None:
    """Refuse to let SQLite open a store whose database was cut to nothing: it would remove the log beside an empty
    database, also to read it, and with it the newest commits.

    Raises:
        StoreDamaged: it is shorter than a header, and a log or an anchor says that it was not.
        StoreUnavailable: it could not be looked at.
    """
    try:
        size = place.database.stat().st_size
        if size >= _HEADER_BYTES or not (has_anchor or place.has_log()):
            return
    except FileNotFoundError:
        return  # opening it says so
    except OSError as error:
        raise StoreUnavailable(f"cannot look at {place.database}: {error}") from error
    kept = f"{place.wal} may hold its newest commits" if place.has_log() else "nothing is left in it"
    raise StoreDamaged(f"{place.database} is cut to {size} bytes; {kept}")


def require_not_foreign(place: Place, *, has_anchor: bool) -> None:
    """Refuse what another program, or a newer version, made.

    Raises:
        StoreUnusable: it is no Safepoint store, and has no anchor that says that it was one.
        StoreVersionNewer: a newer version wrote it.
    """
    try:
        application_id, version = _header(place)
    except sqlite3.Error as error:
        if has_anchor or getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB:
            return  # damaged, or being written: opening it in earnest says which
        raise _foreign(place) from error
    if application_id == schema.APPLICATION_ID:
        if version > schema.SCHEMA_VERSION:
            raise StoreVersionNewer(version, schema.SCHEMA_VERSION)
    elif not has_anchor:
        raise _foreign(place)


def _header(place: Place) -> tuple[int, int]:
    connection = connect(f"{place.uri('ro')}&immutable=1", 0.0)
    try:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    finally:
        close_quietly(connection)
    return int(application_id), int(version)


def _foreign(place: Place) -> StoreUnusable:
    return StoreUnusable(f"{place.database} is no Safepoint store: another program made it; it was left as it is")
