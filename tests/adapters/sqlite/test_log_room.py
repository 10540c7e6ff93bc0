"""Room at the end of the log: it is never content, never without bound, and never needed. ADR 0087."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from safepoint.adapters.sqlite.connection import WAL_PAGES
from safepoint.adapters.sqlite.log_room import LogRoom
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreBehindAnchor
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.store_keeping import Trust

from .log_bytes import FRAME, used

ROOM = 64 * FRAME

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def test_commits_find_room_in_the_log(path: Path, store: SqliteStore, recorded: RecordedSession) -> None:
    recorded.keep(store.events, recorded.text("one"))
    log = log_of(path)
    before = log.stat().st_size
    for number in range(5):
        recorded.keep(store.events, recorded.text(f"text {number}"))
    content = log.read_bytes()
    assert len(content) == before
    assert not any(content[used(content) :])


def test_room_behind_the_log_of_a_killed_writer_is_no_content(path: Path, program: Run) -> None:
    assert program("write-and-die", 10).returncode == -signal.SIGKILL
    content = log_of(path).read_bytes()
    assert used(content) < len(content)
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    assert store.condition().events == 14
    store.close()


def test_writers_that_take_turns_make_room_once(path: Path, store: SqliteStore, recorded: RecordedSession) -> None:
    others = [open_store(path) for _ in range(3)]
    before = log_of(path).stat().st_size
    for number in range(4):
        for name, writer in enumerate(others):
            session = RecordedSession(f"session-{number}-{name}")
            session.own(writer.owners)
    content = log_of(path).read_bytes()
    assert len(content) - before <= ROOM
    assert not any(content[used(content) :])
    for writer in others:
        writer.close()


def test_a_copy_of_the_log_without_its_room_is_as_good(
    path: Path, store: SqliteStore, recorded: RecordedSession, tmp_path: Path
) -> None:
    for number in range(5):
        recorded.keep(store.events, recorded.text(f"text {number}"))
    copies = [tmp_path / name / path.name for name in ("whole", "cut")]
    for copy in copies:
        copy.parent.mkdir()
        for file in (path, log_of(path), Path(f"{path}.anchor")):
            shutil.copyfile(file, copy.with_name(file.name))
    content = log_of(copies[1]).read_bytes()
    assert used(content) < len(content)
    os.truncate(log_of(copies[1]), used(content))
    found = [open_reader(copy).condition().events for copy in copies]
    assert found == [store.condition().events] * 2


def test_the_log_gets_no_more_room_than_it_has_before_it_is_written_over(tmp_path: Path) -> None:
    log, pages = tmp_path / "log", 100
    room = LogRoom(log, pages)
    log.write_bytes(b"x" * 32)
    for _ in range(10):
        assert not room.is_cut()
        room.make()
        with log.open("ab") as file:  # as SQLite does where the room is used up
            file.write(b"x")
    assert log.stat().st_size <= pages * FRAME + 10


def test_an_empty_log_gets_no_room(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    room = LogRoom(log, WAL_PAGES)
    assert not room.is_cut()
    room.make()
    assert log.stat().st_size == 0


def test_a_log_that_was_cut_off_gets_room_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    room = LogRoom(log, WAL_PAGES)
    log.write_bytes(b"x")
    assert not room.is_cut()
    room.make()
    os.truncate(log, 1)
    assert room.is_cut()
    room.again()
    assert not room.is_cut()
    room.make()
    assert log.stat().st_size > FRAME


@pytest.mark.parametrize("frames", [0, 10, 40, -2, -1])
@pytest.mark.parametrize("then", ["write", "close"])
@pytest.mark.parametrize("read_before", [True, False])
def test_a_log_that_is_cut_under_a_writer_is_noticed_before_anything_is_written(
    path: Path, store: SqliteStore, recorded: RecordedSession, frames: int, then: str, read_before: bool
) -> None:
    """SQLite does not look: it would write behind the hole, and bring zeros into the database; and whoever closes it
    last brings half of a commit into it.
    """
    for number in range(20):
        recorded.keep(store.events, recorded.text(f"text {number}"))
    before, whole = path.read_bytes(), used(log_of(path).read_bytes())
    size = whole + frames * FRAME if frames < 0 else frames * FRAME
    os.truncate(log_of(path), size)
    if not read_before:  # nobody else has the database open
        for connection, _ in store._readers._idle:
            connection.close()
        store._readers._idle.clear()
    if then == "write":
        for _ in range(2):
            with pytest.raises(StoreBehindAnchor, match="was cut while"):
                store.events.append([recorded.commit(recorded.text("no"))])
        with pytest.raises(StoreBehindAnchor, match="was cut while"):
            recorded.own(store.owners)
    store.close()
    assert (path.read_bytes(), log_of(path).stat().st_size) == (before, size)
    reader = open_reader(path)
    assert reader.condition().trust is Trust.BEHIND_ANCHOR
    reader.close()


def test_a_log_that_was_removed_under_a_writer_is_still_its_own(
    path: Path, store: SqliteStore, recorded: RecordedSession
) -> None:
    log_of(path).unlink()
    recorded.keep(store.events, recorded.text("goes on"))
    store.close()
    reader = open_reader(path)
    assert (reader.condition().trust, reader.condition().events) == (Trust.OK, 5)
    reader.close()


def test_a_log_that_another_process_cut_off_after_a_checkpoint_is_whole(
    path: Path, store: SqliteStore, recorded: RecordedSession, raw: sqlite3.Connection
) -> None:
    for number in range(5):
        recorded.keep(store.events, recorded.text(f"text {number}"))
        assert raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        assert log_of(path).stat().st_size == 0
    recorded.keep(store.events, recorded.text("after it"))
    assert store.condition().trust is Trust.OK


def test_commits_go_on_where_no_room_can_be_made(
    path: Path, store: SqliteStore, recorded: RecordedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LogRoom, "_extended", full)
    store.close()
    again = open_store(path)
    for number in range(5):
        recorded.keep(again.events, recorded.text(f"text {number}"))
    content = log_of(path).read_bytes()
    assert used(content) == len(content)
    again.close()
