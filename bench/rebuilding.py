"""Rebuilding the projections of 1,000,000 events. SPEC section 21, row 6."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from safepoint.adapters.sqlite.projection_tables import WRITTEN, table_statement
from safepoint.adapters.sqlite.store import open_store
from safepoint.domain.projections import TABLES

from .bars import REBUILD
from .measuring import Measured, in_seconds, median, microseconds, ratios
from .stored import baseline_of, states_since, validator
from .workplace import Workplace


class Projected(NamedTuple):
    """The rows of one projection."""

    table: str
    rows: Sequence[tuple[object, ...]]


def rebuild_of_a_large_store(work: Workplace) -> Iterator[Measured]:
    """Row 6: a rebuild against validating and hashing the same events, and inserting the rows that it ends with."""
    path = work.large_store
    validate = validator()
    ours: list[float] = []
    reading: list[float] = []
    writing: list[float] = []
    store = open_store(path)
    try:
        projected = _projected(path)
        for _ in range(work.sizes.slow_rounds):
            started = time.perf_counter()
            rebuilt = store.projections.rebuild()
            ours.append(time.perf_counter() - started)
            reading.append(baseline_of(states_since(path, 0), validate))
            writing.append(bare_rows(work.fresh("rows.sqlite"), projected))
    finally:
        store.close()
    figures = {
        "events": f"{rebuilt.events:,}",
        "rows": f"{sum(len(one.rows) for one in projected):,}",
        "rebuild": in_seconds(median(ours)),
        "an event": microseconds(median(ours) / rebuilt.events),
        "baseline": in_seconds(median(reading)),
        "bare inserts": in_seconds(median(writing)),
    }
    baseline = [read + written for read, written in zip(reading, writing, strict=True)]
    yield Measured(REBUILD, ratios(ours, baseline), figures=figures)


def bare_rows(path: Path, projected: Sequence[Projected]) -> float:
    """Seconds to insert rows into empty tables of the same columns and keys, without indexes, in one transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    started = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for name, rows in projected:
        connection.execute(table_statement(name))
        places = ", ".join("?" * len(TABLES[name].columns))
        connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    connection.execute("COMMIT")
    taken = time.perf_counter() - started
    connection.close()
    return taken


def _projected(path: Path) -> list[Projected]:
    connection = sqlite3.connect(path)
    try:
        return [
            Projected(name, connection.execute(f"SELECT {', '.join(TABLES[name].columns)} FROM {name}").fetchall())
            for name in sorted(WRITTEN)
        ]
    finally:
        connection.close()
