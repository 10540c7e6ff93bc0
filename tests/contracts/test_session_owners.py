"""Both stores keep the contract of session owners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.ports.contract_kit.session_owners import SessionOwnersContract
from safepoint.ports.session_owners import SessionOwners


class TestMemory(SessionOwnersContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def owners(self, store: MemoryStore) -> SessionOwners:
        return store.owners


class TestSqlite(SessionOwnersContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = open_store(tmp_path / "store.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def owners(self, store: SqliteStore) -> SessionOwners:
        return store.owners
