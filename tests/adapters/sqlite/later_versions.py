"""Two versions of the database after the present one, for trying how a store is brought forward. Never published.

As a program: opens the store that it is given with them; or is killed at instants, one after the other.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from safepoint.adapters.sqlite import migrations, projection_tables, schema
from safepoint.adapters.sqlite.migrations import Migration
from safepoint.adapters.sqlite.store import open_store

PRESENT = schema.SCHEMA_VERSION
LAST = PRESENT + 2

_SHELVES = "CREATE TABLE shelves (run_id TEXT PRIMARY KEY, label TEXT NOT NULL) WITHOUT ROWID"
_RULE = """CREATE TRIGGER admissions_update BEFORE UPDATE ON admissions BEGIN
        SELECT RAISE(ABORT, 'an admission is never changed here'); END"""
_MOVED = "CREATE TABLE adoptions_moved (generation INTEGER PRIMARY KEY, who TEXT NOT NULL, note TEXT NOT NULL)"
_INDEX = "CREATE INDEX sessions_by_head ON sessions (head_run_id)"
STEPS = (
    Migration(
        PRESENT + 1,
        (_SHELVES, "INSERT INTO shelves SELECT run_id, 'of ' || session_id FROM admissions ORDER BY run_id"),
    ),
    Migration(
        LAST,
        (
            "DROP TRIGGER admissions_update",
            _RULE,
            _MOVED,
            "INSERT INTO adoptions_moved SELECT generation, adopted_by, note FROM adoptions",
            "UPDATE shelves SET label = upper(label)",
        ),
    ),
)


def statements() -> tuple[str, ...]:
    """What makes an empty store of the last version."""
    kept = [one for one in PRESENT_STATEMENTS if not one.startswith("CREATE TRIGGER admissions_update ")]
    return (*kept, _SHELVES, _RULE, _MOVED)


PRESENT_STATEMENTS = schema.statements()


def install(put: Callable[[object, str, object], None], steps: tuple[Migration, ...] = STEPS) -> None:
    """Let the program be one of the last version.

    Args:
        put: sets an attribute of a module, as `setattr` does.
        steps: how it is reached.
    """
    put(schema, "SCHEMA_VERSION", LAST)
    put(schema, "statements", statements)
    put(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, *steps))
    put(projection_tables, "_INDEXES", (*projection_tables._INDEXES, _INDEX))
    forget()


def forget() -> None:
    """Let nobody remember the shape of another version."""
    for cached in (schema.expected, projection_tables.names, projection_tables._expected):
        cached.cache_clear()


def open_once(path: str, instant: str = "") -> str:
    """Open and close it, be killed at an instant if one is named; answers how it stands."""
    install(setattr)

    def on_point(point: str) -> None:
        if point == instant:
            os.kill(os.getpid(), signal.SIGKILL)

    store = open_store(path, on_point=on_point)
    try:
        return f"{store.condition().trust} {len(store.views.sessions())}"
    finally:
        store.close()


def killed_at_each(path: Path, folder: Path, instants: list[str]) -> None:
    """Begin anew for each instant, in children of this process: one is killed there, and one opens what it left.

    Args:
        path: the store.
        folder: gets a folder for each instant, with what was left, and with what came of it.
        instants: where to kill.
    """
    before = {file: file.read_bytes() for file in (path, Path(f"{path}.anchor"))}
    for instant in instants:
        for file, content in before.items():
            file.write_bytes(content)
        for name, killed_at in (("left", instant), ("after", "")):
            child = os.fork()
            if child == 0:
                os._exit(0 if open_once(str(path), killed_at) == "ok 2" else 1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status == (-signal.SIGKILL if killed_at else 0), (instant, status)
            kept = folder / instant.replace(":", "-") / name
            kept.mkdir(parents=True)
            for file in path.parent.glob(f"{path.name}*"):
                if file.is_file() and not file.name.endswith("-shm"):
                    (kept / file.name).write_bytes(file.read_bytes())


if __name__ == "__main__":
    store_path, *rest = sys.argv[1:]
    if rest:
        killed_at_each(Path(store_path), Path(rest[0]), rest[1:])
    else:
        sys.stdout.write(open_once(store_path))
