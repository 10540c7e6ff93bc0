"""A restore that fails, or is killed, between taking the old database away and putting the new one there. r3-085."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from safepoint.adapters.sqlite.backup import SqliteBackup
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreBehindAnchor, StoreUnavailable
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession, incarnation_named
from safepoint.ports.incarnations import Incarnation
from safepoint.ports.store_backup import StoreCopy, StoreInUse
from safepoint.ports.store_keeping import Trust

KILLED_RESTORE = """
import os, signal, sys
from pathlib import Path
from safepoint.adapters.sqlite import backup
backup.os.rename = lambda source, target: os.kill(os.getpid(), signal.SIGKILL)
backup.SqliteBackup(Path(sys.argv[1])).restore(Path(sys.argv[2]), lambda path, copy: None, sys.argv[3])
"""


def unchecked(path: Path, copy: StoreCopy) -> None:
    """Whatever it holds."""


@pytest.fixture
def saved(path: Path, recorded: RecordedSession, store: SqliteStore) -> Path:
    file = path.with_name("backup")
    SqliteBackup(path).back_up(file, unchecked)
    return file


@pytest.fixture
def hot(path: Path, recorded: RecordedSession, store: SqliteStore, saved: Path) -> dict[str, bytes]:
    """A store whose newest events stand in the WAL of a writer that died."""
    recorded.keep(store.events, recorded.text("after the backup"))
    found = content(path)
    store.close()
    for name, bytes_ in found.items():
        path.with_name(name).write_bytes(bytes_)
    return found


def content(path: Path) -> dict[str, bytes]:
    """What holds facts, by name."""
    kept = (file for file in path.parent.iterdir() if file.name.startswith("store.sqlite") and file.is_file())
    return {file.name: found for file in kept if not file.name.endswith("-shm") and (found := file.read_bytes())}


def events(path: Path) -> int:
    store = open_reader(path)
    try:
        return store.condition().events
    finally:
        store.close()


def test_a_restore_that_fails_in_its_last_step_changes_nothing(
    path: Path, hot: dict[str, bytes], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, target: Path) -> None:
        raise PermissionError(13, "no")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", fail)
        with pytest.raises(StoreUnavailable):
            SqliteBackup(path).restore(saved, unchecked, NOON)
    assert content(path) == hot
    store = open_reader(path)
    assert store.condition().trust is Trust.OK
    store.close()


def test_a_restore_that_is_killed_in_its_last_step_loses_nothing_and_is_noticed(
    path: Path, hot: dict[str, bytes], saved: Path
) -> None:
    wanted = events(path)
    command = [sys.executable, "-c", KILLED_RESTORE, str(path), str(saved), NOON]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (aside,) = (file for file in path.parent.glob("store.sqlite.before-*") if file.name[-1] == "Z")
    assert events(aside) == wanted
    store = open_store(path)
    with pytest.raises(StoreBehindAnchor):
        store.owners.register(_life())
    store.close()
    restored = SqliteBackup(path).restore(saved, unchecked, "2026-03-02T12:00:00.000000Z")
    assert events(path) == restored.copy.events == wanted - 1
    assert not list(path.parent.glob("*.restoring"))


def _life() -> Incarnation:
    return incarnation_named("other")


def test_a_store_that_is_open_in_another_process_is_in_use(
    path: Path, recorded: RecordedSession, store: SqliteStore, saved: Path
) -> None:
    code = "import sys; from safepoint.adapters.sqlite.store import open_reader; store = open_reader(sys.argv[1]);"
    command = [sys.executable, "-c", f"{code} print(store.condition().trust, flush=True); sys.stdin.read()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdin is not None
        assert reader.stdout.readline() == "ok\n"
        with pytest.raises(StoreInUse):
            SqliteBackup(path).restore(saved, unchecked, NOON)
        reader.stdin.close()
    assert not os.path.lexists(f"{path}.restoring")
    store.close()
    assert SqliteBackup(path).restore(saved, unchecked, NOON).previous is not None
    restored = open_reader(path)
    assert restored.condition().trust is Trust.COPIED
    restored.close()
