"""Opening: what is a store, what is not, and what is left as it was. SPEC sections 6, 7 and F1."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safepoint.adapters.sqlite import schema
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import (
    StoreDamaged,
    StoreError,
    StoreGone,
    StoreMissing,
    StoreObstructed,
    StoreUnavailable,
    StoreUnreadable,
    StoreUnusable,
    StoreVersionNewer,
)
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.store_keeping import Trust


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


OPENINGS = [open_store, open_reader]
both = pytest.mark.parametrize("opening", OPENINGS, ids=["for writing", "for reading"])


Opening = Callable[[Path], SqliteStore]
Run = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[[Opening, type[StoreError]], str]
Fingerprint = Callable[[], dict[str, str]]


@pytest.fixture
def refused(path: Path, fingerprint: Fingerprint) -> Refused:
    """The sentence with which the path is refused; nothing in its folder may change."""

    def refuse(opening: Opening, error: type[StoreError]) -> str:
        before = fingerprint()
        with pytest.raises(error) as caught:
            opening(path)
        assert type(caught.value) is error
        assert fingerprint() == before
        return str(caught.value)

    return refuse


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    folder = Path(tempfile.mkdtemp(prefix="safepoint-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_new_store_is_empty_trusted_and_private(path: Path, store: SqliteStore) -> None:
    assert store.condition().trust is Trust.OK
    assert list(store.streams()) == []
    store.owners.owner(RecordedSession().session_id)
    RecordedSession().own(store.owners)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"store.sqlite", "store.sqlite.anchor", "store.sqlite-wal"} <= set(modes)


def test_a_closed_store_leaves_database_and_anchor_alone(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    store.close()
    assert names(path.parent) == ["store.sqlite", "store.sqlite.anchor"]
    again = open_store(path)
    assert again.condition().events == 4
    again.close()


@pytest.mark.parametrize("name", ["mode=memory", ":memory:", "a?b#c%41 d", "naïve😀", "'quote\"", "-x"])
def test_any_file_name_is_a_file_name(tmp_path: Path, name: str) -> None:
    """SQLite's URIs, or the library, would read some of them as something else."""
    store = open_store(tmp_path / name)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    assert {f"{name}", f"{name}.anchor", f"{name}-wal"} <= set(names(tmp_path))
    store.close()
    again = open_reader(tmp_path / name)
    assert again.condition().events == 4
    again.close()


def test_the_settings_of_a_durable_store_are_set(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    connection = store._writer._connection  # type: ignore[union-attr]
    found = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000}


@both
@pytest.mark.parametrize("size", [0, 99])
@pytest.mark.parametrize("beside", ["-wal", ".anchor"])
def test_a_database_that_was_cut_to_nothing_is_not_opened_beside_its_log_or_anchor(
    refused: Refused, path: Path, opening: Opening, size: int, beside: str
) -> None:
    """SQLite removes the log beside an empty database, also to read it."""
    path.write_bytes(bytes(size))
    Path(f"{path}{beside}").write_bytes(b"what was kept")
    said = refused(opening, StoreUnreadable)
    assert f"is cut to {size} bytes" in said
    assert (f"{path}-wal may hold its newest commits" in said) == (beside == "-wal")


def log_as_a_link(log: Path) -> None:
    log.rename(log.with_name("elsewhere"))
    log.symlink_to(log.with_name("elsewhere"))


def log_as_a_folder(log: Path) -> None:
    log.rename(log.with_name("elsewhere"))
    log.mkdir()


def journal_of_another_program(log: Path) -> None:
    log.with_name("store.sqlite-journal").write_bytes(b"journal" * 1_000)


@both
@pytest.mark.parametrize(
    ("obstruct", "said"),
    [
        (log_as_a_link, "-wal is a symbolic link"),
        (log_as_a_folder, "-wal is no file"),
        (journal_of_another_program, "-journal is beside it"),
        (lambda log: log.with_name("store.sqlite-journal").mkdir(), "-journal is no file"),
        (lambda log: log.with_name("store.sqlite-shm").symlink_to(log.with_name("x")), "-shm is a symbolic link"),
    ],
    ids=["log a link", "log a folder", "journal", "journal a folder", "index a link"],
)
def test_what_keeps_sqlite_from_opening_is_named_and_left_as_it_is(
    path: Path, program: Run, opening: Opening, obstruct: Callable[[Path], object], said: str
) -> None:
    assert program("write-and-die", 3).returncode == -signal.SIGKILL
    Path(f"{path}-shm").unlink()
    obstruct(Path(f"{path}-wal"))
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    with pytest.raises(StoreObstructed, match=said):
        opening(path)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()} == before


def test_there_is_no_store_to_read(refused: Refused, path: Path) -> None:
    refused(open_reader, StoreMissing)


def test_whoever_looks_while_a_store_is_being_made_waits_until_it_is_there(path: Path) -> None:
    begun, looked = threading.Event(), threading.Event()

    def on_point(point: str) -> None:
        if point == "store.anchor_made":
            begun.set()
            looked.wait(0.2)

    def make() -> None:
        open_store(path, on_point=on_point).close()

    making = threading.Thread(target=make)
    making.start()
    assert begun.wait(60)
    reader = open_reader(path)
    looked.set()
    assert reader.condition().events == 0
    reader.close()
    making.join()


def test_a_store_whose_making_was_not_finished_is_named_so(path: Path, refused: Refused) -> None:
    class Died(Exception):
        """Whoever made it died."""

    def dies(point: str) -> None:
        raise Died

    with pytest.raises(Died):
        open_store(path, on_point=dies)
    assert names(path.parent) == ["store.sqlite.anchor"]
    assert "was not finished" in refused(open_reader, StoreMissing)
    open_store(path).close()
    open_reader(path).close()


@both
def test_a_folder_that_is_missing_is_not_made(tmp_path: Path, opening: Opening) -> None:
    path = tmp_path / "missing" / "store.sqlite"
    with pytest.raises(StoreUnusable, match="folder does not exist"):
        opening(path)
    assert names(tmp_path) == []


@both
def test_a_folder_is_no_store(path: Path, refused: Refused, opening: Opening) -> None:
    path.mkdir()
    assert "folder" in refused(opening, StoreUnusable)
    assert names(path) == []


@both
@pytest.mark.parametrize(
    "content",
    [b"", b"port = 3000\n", b"SQLite format 3\x00" + b"\x00" * 84, b"\xa7" * 9000],
    ids=["empty", "text", "header", "noise"],
)
def test_a_file_of_another_kind_is_no_store(path: Path, refused: Refused, opening: Opening, content: bytes) -> None:
    path.write_bytes(content)
    refused(opening, StoreUnusable)


@both
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_database_of_another_program_is_left_as_it_is(
    path: Path, refused: Refused, opening: Opening, mode: str
) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE stored_events (a, b)")
    connection.commit()
    connection.close()
    assert "another program" in refused(opening, StoreUnusable)


@both
@pytest.mark.parametrize("in_wal", [False, True], ids=["in the file", "in the WAL"])
def test_a_newer_store_is_refused_untouched(
    path: Path, raw: sqlite3.Connection, store: SqliteStore, fingerprint: Fingerprint, opening: Opening, in_wal: bool
) -> None:
    """Field report r3-093."""
    store.close()
    raw.execute("PRAGMA wal_autocheckpoint = 0")
    raw.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    if not in_wal:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = fingerprint()
    with pytest.raises(StoreVersionNewer) as caught:
        opening(path)
    assert (caught.value.found, caught.value.supported) == (schema.SCHEMA_VERSION + 1, schema.SCHEMA_VERSION)
    assert fingerprint() == before


@both
@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER stored_events_update",
        "DROP TABLE session_owners",
        "ALTER TABLE admissions ADD COLUMN more TEXT",
        "CREATE TRIGGER extra AFTER INSERT ON stored_events BEGIN DELETE FROM commits; END",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 0",
    ],
)
def test_a_store_without_its_rules_is_damaged(
    path: Path, raw: sqlite3.Connection, store: SqliteStore, refused: Refused, opening: Opening, change: str
) -> None:
    """Field report r3-092: a half-changed schema is noticed, not written to."""
    store.close()
    raw.execute(change)
    raw.close()
    refused(opening, StoreUnreadable)


def test_tables_of_other_tools_are_no_damage(path: Path, raw: sqlite3.Connection, store: SqliteStore) -> None:
    store.close()
    raw.execute("CREATE TABLE _backup_tool (seq INTEGER)")
    raw.execute("ANALYZE")
    raw.close()
    open_store(path).close()


@both
def test_a_damaged_header_of_a_store_is_damage(
    path: Path, recorded: RecordedSession, store: SqliteStore, refused: Refused, opening: Opening
) -> None:
    store.close()
    with path.open("r+b") as file:
        file.write(b"\x00" * 40)
    refused(opening, StoreUnreadable)


@both
def test_a_database_that_is_gone_is_not_made_again(
    path: Path, recorded: RecordedSession, store: SqliteStore, refused: Refused, opening: Opening
) -> None:
    store.close()
    path.unlink()
    assert "gone" in refused(opening, StoreGone)


def test_a_wal_without_its_database_is_kept(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    wal = path.with_name("other.sqlite-wal")
    wal.write_bytes(Path(f"{path}-wal").read_bytes())
    content = wal.read_bytes()
    with pytest.raises(StoreDamaged, match="without its database"):
        open_store(path.with_name("other.sqlite"))
    assert wal.read_bytes() == content
    assert not path.with_name("other.sqlite").exists()


@pytest.mark.parametrize("instant", ["store.anchor_made", "store.filled", "store.made"])
def test_a_store_whose_making_was_cut_short_is_made_by_the_next(path: Path, instant: str) -> None:
    class CutError(Exception):
        pass

    def cut(point: str) -> None:
        if point == instant:
            raise CutError

    with pytest.raises(CutError):
        open_store(path, on_point=cut)
    store = open_store(path)
    RecordedSession().own(store.owners)
    assert store.condition().trust is Trust.OK
    store.close()
    assert names(path.parent) == ["store.sqlite", "store.sqlite.anchor"]


def test_leftovers_of_a_killed_maker_are_removed(path: Path) -> None:
    for suffix in (".unfinished", ".unfinished-journal"):
        Path(f"{path}{suffix}").write_bytes(b"half of it")
    open_store(path).close()
    assert not [name for name in names(path.parent) if "unfinished" in name]


def test_many_who_make_a_store_at_once_make_one(path: Path) -> None:
    stores: list[SqliteStore] = []
    start = threading.Barrier(6)

    def make() -> None:
        start.wait()
        stores.append(open_store(path))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len({store.condition().store_id for store in stores}) == 1
    assert len(stores) == 6
    for n, store in enumerate(stores):
        one = RecordedSession(f"{n}")
        one.own(store.owners)
        one.keep(store.events, *one.opened())
    assert stores[0].condition()[4:] == (24, 24)
    for store in stores:
        store.close()


@both
def test_whoever_meets_a_lock_waits_for_it_once(
    path: Path, recorded: RecordedSession, store: SqliteStore, raw: sqlite3.Connection, opening: Callable[..., object]
) -> None:
    store.close()
    raw.execute("PRAGMA locking_mode = EXCLUSIVE")
    raw.execute("BEGIN EXCLUSIVE")
    raw.execute("UPDATE sessions SET head_kind = head_kind")
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match="keeps it locked"):
        opening(path, busy_timeout_seconds=1.0)
    assert 1.0 <= time.monotonic() - begun < 3.0


def test_a_store_opened_for_reading_writes_nothing(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    reader = open_reader(path)
    for write in (
        lambda: reader.events.append([recorded.commit(recorded.text("no"))]),
        lambda: reader.owners.take(recorded.session_id, recorded.guard.incarnation_id, None),
        reader.projections.rebuild,
        lambda: reader.adopt(by="b", note="n", at="a"),
    ):
        with pytest.raises(StoreUnavailable, match="opened for reading"):
            write()
    reader.close()


def test_an_anchor_that_may_be_read_and_not_written_is_said_to_be_that(shared_folder: Path) -> None:
    path = shared_folder / "store.sqlite"
    open_store(path).close()
    program = Path(__file__).with_name("writer_program.py")
    command = [sys.executable, str(program), str(path), "without-rights", "777", "666", "444"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    reader, writer = result.stdout.splitlines()
    assert reader == "reader condition ok"
    assert writer == f"writer StoreForbidden the anchor {path}.anchor may not be written: Permission denied"


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "entered"),
    [("700", "600", None), ("755", "600", None), ("555", "444", "its folder"), ("755", "444", "its folder")],
    ids=["closed folder", "private files", "read-only folder", "the folder of somebody else"],
)
def test_without_rights_there_is_a_typed_error(
    shared_folder: Path, folder_mode: str, file_mode: str, entered: str | None
) -> None:
    """What cannot be looked at is not empty (F1)."""
    path = shared_folder / "store.sqlite"
    store = open_store(path)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    store.close()
    before = {file.name: file.read_bytes() for file in shared_folder.iterdir()}
    if os.geteuid() != 0:  # the owner is asked for no bits that it has
        folder_mode, file_mode = ("000", "600") if folder_mode == "700" else (folder_mode, file_mode.replace("6", "0"))
    program = Path(__file__).with_name("writer_program.py")
    command = [sys.executable, str(program), str(path), "without-rights", folder_mode, file_mode]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    shared_folder.chmod(0o755)
    for file in shared_folder.iterdir():
        file.chmod(0o600)
    reader, writer = result.stdout.splitlines()
    error, reason = ("StoreUnavailable", "Permission denied") if entered is None else ("StoreForbidden", entered)
    assert all(line.split()[1] == error and reason in line for line in (reader, writer)), result.stdout + result.stderr
    assert {file.name: file.read_bytes() for file in shared_folder.iterdir()} == before
