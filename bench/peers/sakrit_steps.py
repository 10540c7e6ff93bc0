"""sakrit: an effect with a key of its own, in its SQLite ledger."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

from sakrit import ArgClass, EffectDecl, Sakrit, SqliteLedger

from .serving import ARGUMENTS, serve


def program(folder: Path) -> tuple[Callable[[int], list[float]], Mapping[str, object]]:
    """Each step is declared before it is timed: the declaration names its key."""
    database = folder / "sakrit.sqlite"
    ledger = Sakrit(SqliteLedger(str(database)), secret=b"0" * 32)
    keys = count()
    arguments = dict.fromkeys((*ARGUMENTS, "part"), ArgClass.IDENTITY)

    def write_file(path: str, content: str, part: int) -> str:
        return "ok"

    def measured(number: int) -> list[float]:
        seconds = []
        for part in range(number):
            step = ledger.effect(EffectDecl("write_file", arguments), key=f"key-{next(keys)}")(write_file)
            started = time.perf_counter()
            step(**ARGUMENTS, part=part)
            seconds.append(time.perf_counter() - started)
        return seconds

    measured(1)
    with closing(sqlite3.connect(database)) as connection:
        (journal_mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return measured, {"journal_mode": journal_mode}


if __name__ == "__main__":
    serve(program)
