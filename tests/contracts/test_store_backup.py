"""Backups of files, and those among stores in memory, keep the contract."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from safepoint.adapters.memory.backup import MemoryBackup, MemoryShelf
from safepoint.adapters.sqlite.backup import SqliteBackup
from safepoint.adapters.sqlite.store import open_store
from safepoint.ports.contract_kit.store_backup import Places, StoreAtWork, StoreBackupContract
from safepoint.ports.event_store import EventStore
from safepoint.ports.session_owners import SessionOwners
from safepoint.ports.store_backup import StoreBackup
from safepoint.ports.store_keeping import StoreKeeping

USER = """
import sys
from safepoint.adapters.sqlite.store import open_store
store = open_store(sys.argv[1])
print(store.condition().trust, flush=True)
sys.stdin.read()
store.close()
"""


class Opened(NamedTuple):
    events: EventStore
    owners: SessionOwners
    keeping: StoreKeeping


class MemoryPlaces(Places):
    def __init__(self) -> None:
        self._shelf = MemoryShelf()

    def backup(self, name: str) -> StoreBackup:
        return MemoryBackup(self._shelf, self.file(name))

    @contextmanager
    def opened(self, name: str | Path) -> Iterator[StoreAtWork]:
        with self._shelf.in_use(Path(name)) as store:
            yield Opened(store.events, store.owners, store)

    @contextmanager
    def used_elsewhere(self, name: str) -> Iterator[None]:
        with self.opened(name):
            yield

    def file(self, name: str) -> Path:
        return Path(name)

    def is_there(self, file: Path) -> bool:
        return file in self._shelf.stores


class SqlitePlaces(Places):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def backup(self, name: str) -> StoreBackup:
        return SqliteBackup(self.file(name))

    @contextmanager
    def opened(self, name: str | Path) -> Iterator[StoreAtWork]:
        store = open_store(self._folder / name)
        try:
            yield Opened(store.events, store.owners, store)
        finally:
            store.close()

    @contextmanager
    def used_elsewhere(self, name: str) -> Iterator[None]:
        command = [sys.executable, "-c", USER, str(self.file(name))]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
            assert user.stdin is not None
            assert user.stdout is not None
            assert user.stdout.readline() == "ok\n"
            yield
            user.stdin.close()

    def file(self, name: str) -> Path:
        return self._folder / name

    def is_there(self, file: Path) -> bool:
        return file.exists()


class TestMemory(StoreBackupContract):
    @pytest.fixture
    def places(self) -> Places:
        return MemoryPlaces()


class TestSqlite(StoreBackupContract):
    @pytest.fixture
    def places(self, tmp_path: Path) -> Places:
        return SqlitePlaces(tmp_path)
