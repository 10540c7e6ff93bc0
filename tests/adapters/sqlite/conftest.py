"""A store on a real disk, with one owned session in it."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

PROGRAM = Path(__file__).with_name("writer_program.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = open_store(path)
    yield store
    store.close()


@pytest.fixture
def recorded(store: SqliteStore) -> RecordedSession:
    recorded = RecordedSession()
    recorded.own(store.owners)
    recorded.keep(store.events, *recorded.opened())
    return recorded


@pytest.fixture
def raw(path: Path, recorded: RecordedSession) -> Iterator[sqlite3.Connection]:
    """Somebody who bypasses the application."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def program(path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `writer_program.py` on the store in a process of its own."""

    def run(*arguments: Any, timeout_seconds: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(PROGRAM), str(path), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )

    return run


@pytest.fixture
def fingerprint(path: Path) -> Callable[[], dict[str, str]]:
    """Digests of the store's files; the shared-memory index of SQLite is no content, nor is a WAL without bytes."""

    def digests() -> dict[str, str]:
        found = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
        return {
            name: hashlib.sha256(content).hexdigest()
            for name, content in sorted(found.items())
            if not name.endswith("-shm") and (content or not name.endswith("-wal"))
        }

    return digests
