"""Both stores keep the contract of forgetting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.ports.contract_kit.session_forgetting import SessionForgettingContract
from safepoint.ports.event_store import EventStore
from safepoint.ports.session_forgetting import SessionForgetting
from safepoint.ports.session_owners import SessionOwners
from safepoint.ports.store_keeping import Projections, StoreKeeping
from safepoint.ports.views import Views


class TestMemory(SessionForgettingContract):
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
    def views(self, store: MemoryStore) -> Views:
        return store.views

    @pytest.fixture
    def projections(self, store: MemoryStore) -> Projections:
        return store.projections

    @pytest.fixture
    def keeping(self, store: MemoryStore) -> StoreKeeping:
        return store

    @pytest.fixture
    def forgetting(self, store: MemoryStore) -> SessionForgetting:
        return store.forgetting


class TestSqlite(SessionForgettingContract):
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
    def views(self, store: SqliteStore) -> Views:
        return store.views

    @pytest.fixture
    def projections(self, store: SqliteStore) -> Projections:
        return store.projections

    @pytest.fixture
    def keeping(self, store: SqliteStore) -> StoreKeeping:
        return store

    @pytest.fixture
    def forgetting(self, store: SqliteStore) -> SessionForgetting:
        return store.forgetting
