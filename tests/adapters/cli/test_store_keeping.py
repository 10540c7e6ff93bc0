"""Rebuilding, adopting, backing up and restoring a store. SPEC section 6 and issue 3."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.process.file_lock import take
from safepoint.adapters.sqlite.store import open_reader, open_store
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

from .program import Program, Ran


@pytest.fixture
def worked(program: Program) -> Program:
    """A program whose store holds one finished session."""
    program.script()
    assert program(*program.run()).code == 0
    return program


@pytest.fixture
def backup(worked: Program) -> Path:
    file = worked.folder / "backup.sqlite"
    assert worked("backup", file).code == 0
    return file


def refused(ran: Ran, exit_code: int, code: str) -> None:
    assert (ran.code, ran.document["code"]) == (exit_code, code), ran
    assert ran.document["next_step"]


def names(program: Program) -> set[str]:
    """Files beside the store, but for what looking leaves: a WAL without bytes and the index of it."""
    found = (path for path in program.store.parent.iterdir() if path.is_file())
    return {path.name for path in found if not path.name.endswith(("-shm", "-wal"))}


def sessions(program: Program, store: Path | None = None, code: int = 0) -> list[str]:
    """Who is listed, by the program itself."""
    ran = program("list", "--json") if store is None else program.bare("list", "--json", "--store", store)
    assert ran.code == code, ran
    return [one["session_id"] for one in ran.document["sessions"]]


# Rebuilding.


def test_a_rebuild_mends_what_verify_finds_wrong_in_the_views(worked: Program) -> None:
    with sqlite3.connect(worked.store) as raw:
        raw.execute("UPDATE runs SET status = 'failed'")
    raw.close()
    assert worked("verify").code == 4
    ran = worked("rebuild", "--json")
    assert (ran.code, ran.document["unreadable"]) == (0, 0)
    assert ran.document["events"] > 0
    assert worked("verify").code == 0
    assert "were made again" in worked("rebuild").out


def test_a_process_that_reads_sees_whole_views_while_they_are_rebuilt(worked: Program) -> None:
    reader = open_reader(worked.store)
    expected = reader.views.sessions()
    started = worked.start("rebuild")
    seen = []
    while started.poll() is None:
        seen.append(reader.views.sessions())
        time.sleep(0.001)
    reader.close()
    started.communicate()
    assert started.returncode == 0
    assert seen
    assert all(one == expected for one in seen)


def test_a_rebuild_says_that_events_cannot_be_read(worked: Program) -> None:
    with sqlite3.connect(worked.store, isolation_level=None) as raw:
        rule = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'stored_events_update'").fetchone()[0]
        raw.execute("DROP TRIGGER stored_events_update")
        raw.execute("UPDATE stored_events SET state = x'00' WHERE rowid = 3")
        raw.execute(rule)
    raw.close()
    ran = worked("rebuild", "--json")
    assert (ran.code, ran.document["unreadable"]) == (4, 1)
    assert "safepoint verify" in worked("rebuild").out


@pytest.mark.parametrize("command", [("rebuild",), ("adopt", "--note", "x"), ("backup", "copy.sqlite")])
def test_a_command_about_a_store_does_not_make_one(program: Program, command: tuple[str, ...]) -> None:
    refused(program(*command, "--json"), 2, "store_missing")
    assert names(program) == set()


# Adopting.


def test_a_store_that_vouches_for_its_facts_is_not_adopted(worked: Program) -> None:
    before = worked.bytes_of_store()
    refused(worked("adopt", "--note", "because", "--json"), 2, "adoption_not_needed")
    assert worked.bytes_of_store() == before


@pytest.mark.parametrize("lost", ["anchor", "place"])
def test_an_adopted_store_is_worked_in_again_and_says_who_adopted_it(worked: Program, lost: str) -> None:
    if lost == "anchor":
        Path(f"{worked.store}.anchor").unlink()
    else:
        content = worked.store.read_bytes()
        worked.store.rename(worked.folder / "original")
        worked.store.write_bytes(content)
    assert worked(*worked.run()).code in {3, 4}
    ran = worked("adopt", "--by", "Somebody", "--note", "the other is gone", "--json")
    assert ran.code == 0
    assert {name: ran.document[name] for name in ("by", "note", "generation", "was")} == {
        "by": "Somebody",
        "note": "the other is gone",
        "generation": 2,
        "was": "anchor_missing" if lost == "anchor" else "copied",
    }
    with sqlite3.connect(worked.store) as raw:
        assert raw.execute("SELECT generation, adopted_by, note FROM adoptions").fetchall() == [
            (2, "Somebody", "the other is gone")
        ]
    raw.close()
    assert worked("verify").code == 0
    assert worked(*worked.run()).code == 0


def test_an_adoption_says_what_it_means(worked: Program) -> None:
    Path(f"{worked.store}.anchor").unlink()
    said = worked("adopt", "--note", "so be it").out
    assert "absent from it proves nothing" in said
    assert "foreign for good" in said


@pytest.mark.parametrize("note", ["", "  ", "two\nlines", "x" * 1001])
def test_an_adoption_needs_a_reason(worked: Program, note: str) -> None:
    Path(f"{worked.store}.anchor").unlink()
    before = worked.bytes_of_store()
    assert worked("adopt", "--note", note, "--json").code == 2
    assert worked.bytes_of_store() == before


# Backing up.


def test_a_backup_is_one_private_file_that_verifies_and_is_foreign(worked: Program) -> None:
    file = worked.folder / "backup.sqlite"
    before = worked.bytes_of_store()
    ran = worked("backup", file, "--json")
    assert (ran.code, ran.document["sound"], ran.document["fault"]) == (0, True, None)
    assert worked.bytes_of_store() == before
    assert [path.name for path in worked.folder.glob("backup*")] == ["backup.sqlite"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert sessions(worked, file) == sessions(worked)
    assert worked.bare("verify", "--store", file, "--json").document["condition"]["trust"] == "copied"
    assert [path.name for path in worked.folder.glob("backup*")] == ["backup.sqlite"]
    assert "absent from it proves nothing" in worked("backup", worked.folder / "other.sqlite").out


def test_a_backup_never_takes_the_place_of_a_file(worked: Program, backup: Path) -> None:
    before = backup.read_bytes()
    refused(worked("backup", backup, "--json"), 2, "file_exists")
    assert backup.read_bytes() == before


def test_a_backup_of_a_store_that_is_written_holds_its_wal(worked: Program) -> None:
    writer = open_store(worked.store)
    one = RecordedSession("late")
    one.own(writer.owners)
    one.keep(writer.events, *one.opened())
    file = worked.folder / "backup.sqlite"
    assert worked("backup", file).code == 0
    writer.close()
    assert "session-late" in sessions(worked, file)


def test_a_backup_of_a_damaged_store_is_kept_and_says_so(worked: Program) -> None:
    with sqlite3.connect(worked.store, isolation_level=None) as raw:
        rule = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'stored_events_update'").fetchone()[0]
        raw.execute("DROP TRIGGER stored_events_update")
        raw.execute("UPDATE stored_events SET state = x'00' WHERE rowid = 3")
        raw.execute(rule)
    raw.close()
    file = worked.folder / "backup.sqlite"
    ran = worked("backup", file, "--json")
    assert (ran.code, ran.document["sound"], ran.document["damaged_streams"]) == (4, False, 1)
    assert file.exists()
    content = file.read_bytes()
    before = worked.bytes_of_store()
    refused(worked("restore", file, "--json"), 4, "store_damaged")
    said = worked("restore", file).err
    assert "Name another backup" in said
    assert "abandon" not in said  # the store itself may be whole
    assert (worked.bytes_of_store(), file.read_bytes()) == (before, content)


# A store that lost its end.


@pytest.mark.parametrize("as_another_file", [False, True])
def test_a_store_that_lost_its_end_is_never_reported_as_in_order(worked: Program, as_another_file: bool) -> None:
    """A dispatch was lost, so nobody can say that all is settled: neither where yesterday's database was written into
    today's file, nor where it was moved over it (F1).
    """
    yesterday, (known,) = worked.store.read_bytes(), sessions(worked)
    worked.killed_at("P4", *worked.run())
    Path(f"{worked.store}-wal").unlink()
    if as_another_file:
        moved = worked.folder / "yesterday"
        moved.write_bytes(yesterday)
        moved.replace(worked.store)
    else:
        worked.store.write_bytes(yesterday)
    for command in (
        ("list",),
        ("status",),
        ("status", "--fail-if-unsettled"),
        ("verify",),
        ("doctor",),
        ("show", "unknown"),
        worked.run(),
    ):
        ran = worked(*command)
        assert ran.code == 4, (command, ran)
        assert "were kept" in ran.out + ran.err, (command, ran)
        assert ("not the file that was recorded" in ran.out + ran.err) == as_another_file, (command, ran)
    assert worked("plan", known).code == 4
    assert "Sound" not in worked("verify").out
    way = worked("status").out.partition("adopt --note")[2]
    assert ("this copy" in way, "its end may be missing" in way) == (as_another_file, True)
    assert worked("adopt", "--note", "the rest is lost").code == 0
    assert worked("status", "--fail-if-unsettled").code == 0


# Restoring.


def test_r3_085_a_restored_store_has_no_old_frames_and_the_backups_events(worked: Program, backup: Path) -> None:
    """What the WAL of the store that was there holds is kept beside it, and never read into the restored one."""
    wanted = sessions(worked)
    worked.killed_at("P4", *worked.run())
    assert Path(f"{worked.store}-wal").stat().st_size
    later = sessions(worked)
    assert len(later) == len(wanted) + 1
    ran = worked("restore", backup, "--json")
    assert ran.code == 0, ran
    assert not Path(f"{worked.store}-wal").exists()
    assert not Path(f"{worked.store}-shm").exists()
    assert sessions(worked, code=4) == wanted  # what was kept after the backup is not in it (F1)
    with sqlite3.connect(worked.store) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("SELECT MAX(rowid) FROM stored_events").fetchone() == (ran.document["events"],)
    raw.close()
    assert sessions(worked, Path(ran.document["previous"])) == later


def test_a_restored_store_is_foreign_until_it_is_adopted(worked: Program, backup: Path) -> None:
    restored = worked("restore", backup, "--json").document
    refused(worked(*worked.run("--json")), 3, "foreign_run_not_adopted")
    assert [way["command"].split()[1] for way in restored["commands"]] == ["adopt"]
    assert worked("adopt", "--note", "yes").code == 0
    assert worked(*worked.run()).code == 0
    assert worked("verify").code == 0


def test_the_store_that_was_there_can_be_used_under_its_new_name(worked: Program, backup: Path) -> None:
    previous = worked("restore", backup, "--json").document["previous"]
    assert worked.bare("verify", "--store", previous).code == 0
    said = worked("restore", backup).out
    assert f"{worked.store}.before-" in said
    assert Path(previous).exists()


def test_a_store_that_is_gone_is_restored(worked: Program, backup: Path) -> None:
    wanted = sessions(worked)
    worked.store.unlink()
    assert worked("list").code == 4
    assert worked("restore", backup, "--json").document["previous"] is None
    assert sessions(worked) == wanted


def test_a_store_is_restored_where_none_was(worked: Program, backup: Path) -> None:
    store = worked.folder / "elsewhere.sqlite"
    assert worked.bare("restore", backup, "--store", store).code == 0
    assert sessions(worked, store) == sessions(worked)
    assert worked.bare("adopt", "--note", "moved", "--store", store).code == 0
    assert worked.bare("verify", "--store", store).code == 0


@pytest.fixture(params=["writer", "reader", "owner"])
def user(request: pytest.FixtureRequest, worked: Program) -> Iterator[str]:
    """Somebody who uses the store."""
    if request.param == "owner":
        locks = Path(f"{worked.store}.locks")
        locks.mkdir(exist_ok=True)
        held = take(str(locks / "somebody.lock"), 1)
        assert held is not None
        yield "owner"
        os.close(held)
        return
    program = "import sys, sqlite3; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
    reads = "c.execute('SELECT COUNT(*) FROM stored_events').fetchone();"
    writes = "c.execute('BEGIN IMMEDIATE');" if request.param == "writer" else ""
    command = [sys.executable, "-c", f"{program}{reads}{writes}print('open', flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        [*command, str(worked.store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "open\n"
        yield str(request.param)
        process.stdin.close()


def test_r3_085_a_store_in_use_is_not_restored(worked: Program, backup: Path, user: str) -> None:
    before, there = worked.bytes_of_store(), names(worked)
    refused(worked("restore", backup, "--json"), 5, "store_in_use")
    assert worked.bytes_of_store() == before
    assert names(worked) == there


def test_a_store_is_not_restored_while_a_run_goes_on(worked: Program, backup: Path) -> None:
    started = worked.start(*worked.run(), SAFEPOINT_TEST_HOOKS="1", SAFEPOINT_FAILPOINT_STOP="P3")
    try:
        deadline = time.monotonic() + 30
        while "State:\tT" not in Path(f"/proc/{started.pid}/status").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        refused(worked("restore", backup, "--json"), 5, "store_in_use")
    finally:
        started.send_signal(signal.SIGKILL)
        started.communicate()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100], ids=["empty", "text"])
def test_what_is_no_store_is_not_restored(worked: Program, content: bytes) -> None:
    file = worked.folder / "no-store"
    file.write_bytes(content)
    before, there = worked.bytes_of_store(), names(worked)
    ran = worked("restore", file, "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_unusable")
    assert (worked.bytes_of_store(), names(worked), file.read_bytes()) == (before, there, content)


def test_a_store_is_not_restored_from_itself(worked: Program) -> None:
    before, there = worked.bytes_of_store(), names(worked)
    assert worked("restore", worked.store).code == 2
    assert (worked.bytes_of_store(), names(worked)) == (before, there)


# Without room, and without rights.

WITH_LITTLE_ROOM = """
import resource, sys
sys.dont_write_bytecode = True  # the interpreter would keep half of a module
resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
from safepoint.adapters.cli.main import call
sys.exit(call(sys.argv[1:]))
"""


def with_little_room(program: Program, *arguments: str | Path) -> Ran:
    """The program as a process of its own that cannot make any file larger than 16 KiB."""
    command = [sys.executable, "-c", WITH_LITTLE_ROOM, *program.arguments(*arguments, "--json")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ended.stderr
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def test_without_room_no_half_of_a_backup_is_left(worked: Program) -> None:
    before = worked.bytes_of_store()
    refused(with_little_room(worked, "backup", worked.folder / "backup.sqlite"), 1, "store_full")
    assert not list(worked.folder.glob("backup*"))
    assert worked.bytes_of_store() == before


def test_without_room_the_store_that_is_there_stays(worked: Program, backup: Path) -> None:
    before, there = worked.bytes_of_store(), names(worked)
    refused(with_little_room(worked, "restore", backup), 1, "store_full")
    assert (worked.bytes_of_store(), names(worked)) == (before, there)
    assert worked("verify").code == 0


def test_without_room_the_views_stay_as_they_were(worked: Program) -> None:
    listed = sessions(worked)
    refused(with_little_room(worked, "rebuild"), 1, "store_full")
    assert sessions(worked) == listed
    assert worked("verify").code == 0


@pytest.mark.parametrize("command", [("list",), ("status",), ("verify",), ("doctor",)], ids=lambda command: command[0])
def test_without_room_to_look_nothing_is_known_and_the_disk_is_named(worked: Program, command: tuple[str, ...]) -> None:
    """SQLite makes an index beside the log, also for whoever only looks."""
    before = worked.bytes_of_store()
    ran = with_little_room(worked, *command)
    said = ran.document if "code" in ran.document else ran.document["checks"][0]
    assert (ran.code, said["next_step"]) == (5, "Make room on the disk, then try again.")
    assert "there is no room left" in (said.get("message") or said["said"])
    assert worked.bytes_of_store() == before


def test_a_store_that_could_not_be_adopted_for_want_of_room_is_adopted_later(worked: Program) -> None:
    Path(f"{worked.store}.anchor").unlink()
    refused(with_little_room(worked, "adopt", "--note", "x"), 1, "store_full")
    assert worked("verify").code == 4
    assert worked("adopt", "--note", "x").code == 0
    assert worked("verify").code == 0


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_folder_that_is_none_is_a_typed_error(worked: Program, backup: Path, command: str) -> None:
    before = worked.bytes_of_store()
    there = worked.folder / "file"
    there.write_text("no folder")
    ran = (
        worked("backup", there / "b") if command == "backup" else worked.bare("restore", backup, "--store", there / "s")
    )
    assert ran.code == 2
    assert there.read_text() == "no folder"
    assert worked.bytes_of_store() == before
