"""Rebuilding the projections of 1,000,000 events. SPEC section 21, row 6."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from safepoint.adapters.sqlite.projection_tables import WRITTEN, table_statement
from safepoint.adapters.sqlite.store import open_store

from .bars import REBUILD
from .measuring import Measured, Taken, added, cpu_ratio, in_seconds, median_wall, microseconds, taken_by, wall_ratios
from .stored import baseline_of, newest_row, states_since, validator
from .workplace import Workplace


class Projected(NamedTuple):
    """The rows of one projection."""

    table: str
    rows: Sequence[tuple[object, ...]]


def rebuild_of_a_large_store(work: Workplace) -> Iterator[Measured]:
    """Row 6: a rebuild against validating and hashing the same events, and inserting the rows that it ends with."""
    path = work.large_store
    validate = validator()
    ours: list[Taken] = []
    reading: list[Taken] = []
    writing: list[Taken] = []
    store = open_store(path)
    try:
        projected, events = _projected(path), newest_row(path)
        for _ in range(work.sizes.slow_rounds):
            ours.append(taken_by(store.projections.rebuild))
            reading.append(baseline_of(states_since(path, 0), validate))
            writing.append(bare_rows(work.fresh("rows.sqlite"), projected))
    finally:
        store.close()
    figures = {
        "events": f"{events:,}",
        "rows": f"{sum(len(one.rows) for one in projected):,}",
        "rebuild": in_seconds(median_wall(ours)),
        "an event": microseconds(median_wall(ours) / events),
        "baseline": in_seconds(median_wall(reading)),
        "bare inserts": in_seconds(median_wall(writing)),
        "ratio of CPU": cpu_ratio(ours, added(reading, writing)),
    }
    yield Measured(REBUILD, wall_ratios(ours, added(reading, writing)), figures=figures)


def bare_rows(path: Path, projected: Sequence[Projected]) -> Taken:
    """What it takes to insert rows into empty tables of the same columns and keys, without indexes, in one
    transaction.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        for name, rows in projected:
            connection.execute(table_statement(name))
            places = ", ".join("?" * len(WRITTEN[name].columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        connection.execute("COMMIT")

    taken = taken_by(insert)
    connection.close()
    return taken


def _projected(path: Path) -> list[Projected]:
    connection = sqlite3.connect(path)
    try:
        return [
            Projected(name, connection.execute(f"SELECT {', '.join(WRITTEN[name].columns)} FROM {name}").fetchall())
            for name in sorted(WRITTEN)
        ]
    finally:
        connection.close()
