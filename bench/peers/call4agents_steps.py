"""call4agents: an effect inside a run."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

import call4agents

from .serving import ARGUMENTS, serve


def program(folder: Path) -> tuple[Callable[[int], list[float]], Mapping[str, object]]:
    """A run for each measurement."""
    database = folder / "call4agents.sqlite"
    call4agents.init(str(database))
    runs = count()

    @call4agents.effect
    def write_file(path: str, content: str, part: int) -> str:
        return "ok"

    def measured(number: int) -> list[float]:
        seconds = []
        with call4agents.run(f"run-{next(runs)}"):
            for part in range(number):
                started = time.perf_counter()
                write_file(**ARGUMENTS, part=part)
                seconds.append(time.perf_counter() - started)
        return seconds

    measured(1)
    with closing(sqlite3.connect(database)) as connection:
        (journal_mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return measured, {"journal_mode": journal_mode}


if __name__ == "__main__":
    serve(program)
