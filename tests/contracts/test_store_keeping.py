"""Both stores keep the contract of keeping a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.ports.contract_kit.store_keeping import StoreKeepingContract
from safepoint.ports.event_store import EventStore
from safepoint.ports.session_owners import SessionOwners
from safepoint.ports.store_keeping import StoreKeeping


class TestMemory(StoreKeepingContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def event_store(self, store: MemoryStore) -> EventStore:
        return store.events

    @pytest.fixture
    def owners(self, store: MemoryStore) -> SessionOwners:
        return store.owners

    @pytest.fixture
    def keeping(self, store: MemoryStore) -> StoreKeeping:
        return store


class TestSqlite(StoreKeepingContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = open_store(tmp_path / "store.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def event_store(self, store: SqliteStore) -> EventStore:
        return store.events

    @pytest.fixture
    def owners(self, store: SqliteStore) -> SessionOwners:
        return store.owners

    @pytest.fixture
    def keeping(self, store: SqliteStore) -> StoreKeeping:
        return store
