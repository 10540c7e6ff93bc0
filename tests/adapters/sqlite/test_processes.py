"""Real processes: killed at every instant, writing side by side, reading what a killed one left. SPEC section 20."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.identifiers import RunId
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.domain.unsealing import unseal
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.store_keeping import Trust

PROGRAM = Path(__file__).with_name("writer_program.py")
Run = Callable[..., subprocess.CompletedProcess[str]]


def start(path: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(path), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def verified(store: SqliteStore, stream: str) -> int:
    """The number of events of a stream whose chain verifies."""
    sequence, digest = 0, FIRST_PREVIOUS_DIGEST
    with store.events.snapshot() as view:
        for record in view.read(stream, limit=10_000):
            sealed = unseal(record, sequence + 1, digest)
            sequence, digest = sealed.sequence, sealed.digest
    return sequence


def test_a_writer_killed_at_any_instant_leaves_all_or_nothing(path: Path, program: Run) -> None:
    result = program("die-everywhere")
    died = [line.split()[2] for line in result.stdout.splitlines() if line.startswith("died")]
    assert result.stdout.splitlines()[-1] == f"instants {len(died)} status 0", result.stderr
    assert died[0] == "store.begin"
    assert died[-3:] == ["store.before_commit", "store.after_commit", "store.after_anchor"]
    assert died.count("store.statement:1") == 1
    assert len(died) == len(set(died)) == 9
    for number, instant in enumerate(died, start=1):
        one = path.with_name(f"{path.name}-{number}")
        kept = 3 if instant in {"store.after_commit", "store.after_anchor"} else 0
        reader = open_reader(one)
        condition = reader.condition()
        assert (condition.trust, condition.events) == (Trust.OK, 8 + kept * 2), instant
        assert condition.anchored_events == 8 + (6 if instant == "store.after_anchor" else 0), instant
        assert [len(reader.views.operations(RunId(f"run-{name}-a"))) for name in ("one", "two")] == [kept // 3] * 2
        assert list(reader.projections.differences()) == []
        reader.close()
        store = open_store(one)
        later = RecordedSession("later")
        later.own(store.owners)
        later.keep(store.events, *later.opened())
        for stream in store.streams():
            assert verified(store, stream) > 0
        store.close()


def test_reading_after_a_kill_changes_no_byte(
    path: Path, program: Run, fingerprint: Callable[[], dict[str, str]]
) -> None:
    assert program("write-and-die", 20).returncode == -signal.SIGKILL
    before = fingerprint()
    assert f"{path.name}-wal" in before
    for _ in range(2):
        reader = open_reader(path)
        assert reader.condition()[4:] == (24, 24)
        assert verified(reader, "run:run-one-a") == 22
        assert [row.session_id for row in reader.views.sessions()] == ["session-one"]
        assert list(reader.projections.differences()) == []
        reader.close()
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    store.close()
    assert fingerprint() == before


def test_reading_beside_a_writer_changes_no_byte(
    path: Path, recorded: RecordedSession, store: SqliteStore, fingerprint: Callable[[], dict[str, str]]
) -> None:
    before = fingerprint()
    reader = open_reader(path)
    assert verified(reader, "run:run-one-a") == 2
    reader.close()
    assert fingerprint() == before


def test_processes_that_own_different_sessions_write_side_by_side(path: Path) -> None:
    """Field report r3-087; and the anchor gives no false alarm meanwhile."""
    open_store(path).close()
    writers = [start(path, "write", name, 60) for name in ("one", "two", "three")]
    seen: list[tuple[Trust, int]] = []
    rows: list[int] = []
    tail = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)
    reader = open_reader(path, busy_timeout_seconds=30)
    while any(writer.poll() is None for writer in writers):
        condition = reader.condition()
        seen.append((condition.trust, condition.events))
        last = rows[-1] if rows else 0
        rows += [row for (row,) in tail.execute("SELECT rowid FROM stored_events WHERE rowid > ?", (last,))]
    tail.close()
    for writer in writers:
        output, errors = writer.communicate(timeout=60)
        assert (writer.returncode, len(output.splitlines())) == (0, 60), errors
    assert {trust for trust, _ in seen} == {Trust.OK}
    assert [events for _, events in seen] == sorted(events for _, events in seen)
    assert rows == list(range(1, len(rows) + 1))
    for name in ("one", "two", "three"):
        assert verified(reader, f"run:run-{name}-a") == 62
    assert reader.condition()[4:] == (192, 192)
    assert list(reader.projections.differences()) == []
    reader.close()


def test_the_anchor_gives_no_false_alarm_beside_three_writers_that_are_killed(path: Path) -> None:
    read_beside_writers(path, reads=2_000)


@pytest.mark.soak
def test_the_anchor_gives_no_false_alarm_in_a_hundred_thousand_reads(path: Path) -> None:
    read_beside_writers(path, reads=100_000)


def read_beside_writers(path: Path, reads: int) -> None:
    """Look at a store while three processes write; now and then one is killed, and another begins in its place.

    Half of the looks are those of a store that was opened before, the others open it anew.
    """
    open_store(path).close()
    number = 0
    writers: list[subprocess.Popen[str]] = []
    reader = open_reader(path, busy_timeout_seconds=30)
    kept = 0
    try:
        for read in range(reads):
            if read % 500 == 0 and len(writers) == 3:
                killed = writers.pop(0)
                killed.kill()
                killed.communicate()
            while len(writers) < 3:
                number += 1
                writers.append(start(path, "write-for-ever", f"{number}"))
                stdout = writers[-1].stdout
                assert stdout is not None
                assert stdout.readline() == "begun\n"
            looking = reader if read % 2 else open_reader(path, busy_timeout_seconds=30)
            condition = looking.condition()
            assert (condition.trust, condition.events >= kept) == (Trust.OK, True), (read, condition)
            assert condition.anchored_events is not None
            assert condition.anchored_events <= condition.events
            kept = condition.events
            if looking is not reader:
                looking.close()
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
        reader.close()
    assert kept > 3 * number
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    later = RecordedSession("later")
    later.own(store.owners)
    later.keep(store.events, *later.opened())
    assert list(store.faults()) == []
    store.close()


def test_verify_finds_nothing_wrong_in_a_store_that_is_written_and_rebuilt_meanwhile(path: Path) -> None:
    rebuilding = open_store(path, busy_timeout_seconds=60)
    writer = start(path, "write-for-ever", "one")
    reader = open_reader(path, busy_timeout_seconds=30)
    told: list[int] = []
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begun\n"
        verify = VerifyStore(reader.events, reader, reader.owners, reader.projections)
        for _ in range(10):
            found = verify(lambda streams, events: told.append(events))
            assert found.sound, found
            assert rebuilding.projections.rebuild().unreadable == 0
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()
        reader.close()
        rebuilding.close()
    assert told[-1] > told[0] > 0


def test_a_stopped_writer_leaves_the_store_to_others(path: Path) -> None:
    """A process that was stopped between COMMIT and anchor is overtaken; when it goes on, nothing is lowered."""
    store = open_store(path)
    one = RecordedSession("one")
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    stopped = threading.Event()
    go_on = threading.Event()

    def on_point(point: str) -> None:
        if point == "store.after_commit" and not stopped.is_set():
            stopped.set()
            assert go_on.wait(60)

    slow = open_store(path, on_point=on_point)
    thread = threading.Thread(target=lambda: one.keep(slow.events, one.text("slow")))
    thread.start()
    assert stopped.wait(60)
    assert store.condition()[4:] == (5, 4)
    two = RecordedSession("two")
    two.own(store.owners)
    two.keep(store.events, *two.opened())
    assert store.condition()[4:] == (9, 9)
    go_on.set()
    thread.join(60)
    assert store.condition()[4:] == (9, 9)
    slow.close()
    store.close()


def test_a_store_is_not_used_in_a_forked_child(path: Path, program: Run) -> None:
    result = program("in-a-fork")
    assert result.stdout.splitlines() == [
        "child append StoreUnavailable",
        "child snapshot StoreUnavailable",
        "child owner StoreUnavailable",
        "parent wrote",
    ], result.stderr


@pytest.mark.parametrize("bytes_max", [500_000, 1_100_000])
def test_when_there_is_no_room_it_is_told_and_nothing_is_half_written(path: Path, program: Run, bytes_max: int) -> None:
    """Field report r3-171: a full disk is `store_full`, and what was answered before is kept."""
    result = program("fill", bytes_max)
    lines = result.stdout.splitlines()
    assert len(lines) == 2, result.stderr
    kept, error = int(lines[0].split()[1]), lines[0].split()[2]
    assert error == "StoreFull", lines[0]
    assert kept > 3
    assert lines[1] == f"stored {kept}"
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    assert verified(store, "run:run-one-a") == kept + 2
    assert list(store.projections.differences()) == []
    later = RecordedSession("later")
    later.own(store.owners)
    later.keep(store.events, *later.opened())
    store.close()


def test_where_it_is_not_known_whether_a_commit_was_kept_it_is_told_that_there_was_no_room(
    path: Path, program: Run
) -> None:
    """A commit that keeps no event, of an owner: nobody can tell from the events whether it is there."""
    raised, stored = program("fill-with-owners").stdout.splitlines()
    _, taken, no_room, *sentence = raised.split()
    assert (no_room, stored) == ("True", f"stored {taken}")
    assert " ".join(sentence) == f"it is not known whether {path} kept the last commit: there is no room left"


def test_a_store_cannot_be_made_without_room(path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from safepoint.adapters.sqlite.store import open_store\n"
        "from safepoint.domain.errors import StoreFull\n"
        "sys.dont_write_bytecode = True\n"  # the interpreter would keep half of a module
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "try: open_store(Path(sys.argv[1]))\n"
        "except StoreFull: sys.exit(7)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], timeout=120, check=False, capture_output=True, text=True
    )
    assert result.returncode == 7, result.stderr
    assert not path.exists()
    assert sorted(os.listdir(path.parent)) == [f"{path.name}.anchor"]  # noqa: PTH208
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    store.close()
