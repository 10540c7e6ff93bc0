"""Both stores keep the contract of the run importer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreUnavailable
from safepoint.ports.contract_kit.run_importer import RunImporterContract
from safepoint.ports.event_store import Commit, EventStore
from safepoint.ports.run_importer import RunImporter
from safepoint.ports.session_owners import SessionOwners
from safepoint.ports.store_keeping import Trust


class TestMemory(RunImporterContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def importer(self, store: MemoryStore) -> RunImporter:
        return store.events

    @pytest.fixture
    def event_store(self, store: MemoryStore) -> EventStore:
        return store.events

    @pytest.fixture
    def owners(self, store: MemoryStore) -> SessionOwners:
        return store.owners


class TestSqlite(RunImporterContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = open_store(tmp_path / "store.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def importer(self, store: SqliteStore) -> RunImporter:
        return store.events

    @pytest.fixture
    def event_store(self, store: SqliteStore) -> EventStore:
        return store.events

    @pytest.fixture
    def owners(self, store: SqliteStore) -> SessionOwners:
        return store.owners

    def test_an_import_raises_the_anchor_and_leaves_the_views_as_a_rebuild_makes_them(
        self, store: SqliteStore, imported: Commit
    ) -> None:
        store.events.import_runs(imported)
        condition = store.condition()
        assert (condition.trust, condition.events) == (Trust.OK, condition.anchored_events)
        assert condition.events == len(imported.events)
        assert list(store.projections.differences()) == []

    def test_a_store_that_was_opened_for_reading_imports_nothing(
        self, store: SqliteStore, imported: Commit, tmp_path: Path
    ) -> None:
        reader = open_reader(tmp_path / "store.sqlite")
        with pytest.raises(StoreUnavailable):
            reader.events.import_runs(imported)
        reader.close()
