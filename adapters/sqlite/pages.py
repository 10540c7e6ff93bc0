"""What SQLite finds wrong with pages and indexes, by table, so that it is known what they hold. Issue 3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from .errors import is_damage
from .projection_tables import names

FAULTS_MAX = 100
_WHOLE = f"PRAGMA integrity_check({FAULTS_MAX})"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
_STRANGE = """SELECT name, type FROM sqlite_master WHERE type NOT IN ('table', 'index', 'view', 'trigger')
    OR typeof(name) <> 'text' OR typeof(tbl_name) <> 'text'"""
_LEFT_OVER = "never used"
"""Of a page that no table has: a rebuild leaves the damaged pages of a view behind, and nothing is in them."""


def faults_of_pages(connection: sqlite3.Connection) -> Iterator[str]:
    """Each fault as a sentence."""
    for name, kind in connection.execute(_STRANGE).fetchall():
        yield f"the schema calls {name} {kind!r}, which SQLite does not look at and `rebuild` does"
    try:
        found = connection.execute(_WHOLE).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        yield from _by_table(connection)
        return
    yield from (str(text) for (text,) in found if text != "ok" and _LEFT_OVER not in str(text))


def _by_table(connection: sqlite3.Connection) -> Iterator[str]:
    """SQLite has given up on the whole; one table after the other tells which ones it is about."""
    for (name,) in connection.execute(_TABLES).fetchall():
        what = f"table {name} (a view: it can be made again)" if name in names() else f"table {name}"
        try:
            found = connection.execute(f'PRAGMA integrity_check("{name}")').fetchall()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            yield f"{what}: {error}"
            continue
        yield from (f"{what}: {text}" for (text,) in found if text != "ok" and _LEFT_OVER not in str(text))
