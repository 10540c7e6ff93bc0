"""Rebuilding and comparing the projections of a store in memory. SPEC section 7."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...domain.projection_rebuild import NoRows, bare_row_of, rows_of_record
from ...domain.projections import TABLES, Column
from ...ports.store_keeping import ProjectionDifference, Projections, Rebuilt
from .tables import Key, MemoryTables, put, require_readable, require_writable

Built = dict[str, dict[Key, dict[str, Column]]]


class MemoryProjections(Projections):
    """The projections of a store in memory."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> Rebuilt:
        """See `Projections`."""
        with self._tables.lock:
            require_writable(self._tables)
            built, report = self._build()
            self._tables.projections = built
        if progress is not None:
            progress(report.events, report.events)
        return report

    def differences(self) -> Iterator[ProjectionDifference]:
        """See `Projections`."""
        with self._tables.lock:
            require_readable(self._tables)
            expected, found = self._build()[0], self._tables.projections
            different = [
                ProjectionDifference(name, key, found[name].get(key), expected[name].get(key))
                for name in TABLES
                for key in sorted(found[name].keys() | expected[name].keys(), key=repr)
                if found[name].get(key) != expected[name].get(key)
            ]
        yield from different

    def _build(self) -> tuple[Built, Rebuilt]:
        built: Built = {name: {} for name in TABLES}
        rows = unreadable = 0
        for record in self._tables.records:
            try:
                made = rows_of_record(record)
            except NoRows:
                bare = bare_row_of(record.stream)
                made, unreadable = () if bare is None else (bare,), unreadable + 1
            for row in made:
                put(built, row)
            rows += len(made)
        return built, Rebuilt(len(self._tables.records), rows, unreadable)
