"""Room at the end of the log: it is never content, never without bound, and never needed. ADR 0087."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from safepoint.adapters.sqlite.connection import WAL_PAGES
from safepoint.adapters.sqlite.log_room import LogRoom
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
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
        room.make()
        with log.open("ab") as file:  # as SQLite does where the room is used up
            file.write(b"x")
    assert log.stat().st_size <= pages * FRAME + 10


def test_an_empty_log_gets_no_room(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    LogRoom(log, WAL_PAGES).make()
    assert log.stat().st_size == 0


def test_a_log_that_was_cut_off_gets_room_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    room = LogRoom(log, WAL_PAGES)
    log.write_bytes(b"x")
    room.make()
    os.truncate(log, 1)
    room.make()
    assert log.stat().st_size == 1
    room.again()
    room.make()
    assert log.stat().st_size > FRAME


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
