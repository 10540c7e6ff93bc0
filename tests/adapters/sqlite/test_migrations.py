"""A store of an older version is brought forward whole or not at all. SPEC section 7, F16 and issue 3."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from safepoint.adapters.sqlite import migrations, schema
from safepoint.adapters.sqlite.backup import SqliteBackup
from safepoint.adapters.sqlite.migrations import Migration
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreDamaged, StoreUnavailable, StoreVersionOlder
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.store_backup import StoreCopy
from safepoint.ports.store_keeping import Trust

from . import later_versions

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).with_name("golden")
Fingerprint = Callable[[], dict[str, str]]
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture
def older(path: Path, recorded: RecordedSession, store: SqliteStore) -> Path:
    """A store of the present version: an ended session, and one whose run is open."""
    recorded.keep(store.events, recorded.called("a"), recorded.dispatched("a"))
    ended = RecordedSession("ended")
    ended.own(store.owners)
    ended.keep(store.events, *ended.opened(), ended.text("said"), ended.ended())
    store.close()
    return path


@pytest.fixture
def later(older: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """From here on the program is of a later version."""
    with monkeypatch.context() as patched:
        later_versions.install(patched.setattr)
        yield
    later_versions.forget()


def rows(path: Path) -> Rows:
    """All that a store holds, its version included."""
    with closing(sqlite3.connect(path)) as raw:
        names = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        found: Rows = {name: raw.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
        found["schema"] = raw.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        found["version"] = raw.execute("PRAGMA user_version").fetchall()
        return found


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as raw:
        return schema.version_of(raw)


def program(*arguments: str | Path) -> list[str]:
    """A program of the later version, to be run in a process of its own."""
    return [sys.executable, "-m", "tests.adapters.sqlite.later_versions", *map(str, arguments)]


def run(*arguments: str | Path) -> str:
    """Run it; answers what it says."""
    ended = subprocess.run(program(*arguments), capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def unchecked(path: Path, copy: StoreCopy) -> None:
    """Whatever it holds."""


def test_versions_have_no_gap_and_the_last_step_makes_the_present_one() -> None:
    made = [migration.version for migration in migrations.MIGRATIONS]
    assert made == list(range(migrations.OLDEST_VERSION + 1, schema.SCHEMA_VERSION + 1))
    assert migrations.steps_from(schema.SCHEMA_VERSION) == ()


@pytest.mark.usefixtures("later")
def test_an_older_store_is_brought_forward_and_no_event_is_touched(older: Path) -> None:
    before, anchor = rows(older), Path(f"{older}.anchor").read_bytes()
    store = open_store(older)
    assert store.condition().trust is Trust.OK
    assert list(store.faults()) == []
    assert list(store.projections.differences()) == []
    later = RecordedSession("later")
    later.own(store.owners)
    store.close()
    assert Path(f"{older}.anchor").read_bytes() == anchor
    after = rows(older)
    assert after["version"] == [(later_versions.LAST,)]
    untouched = {"stored_events", "commits", "unique_ids", "admissions", "store_control", "sealed_streams"}
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert after["shelves"] == [(run_id, f"OF {str(session).upper()}") for run_id, session, _ in before["admissions"]]


@pytest.mark.usefixtures("later")
def test_a_migrated_store_is_what_a_new_one_is(older: Path, tmp_path: Path) -> None:
    open_store(older).close()
    open_store(tmp_path / "new.sqlite").close()
    assert rows(older)["schema"] == rows(tmp_path / "new.sqlite")["schema"]


def test_a_migration_killed_at_any_instant_resumes_to_equal_bytes(
    older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field report r3-092: nobody ever finds half of a new schema."""
    before, events, instants = older.read_bytes(), rows(older)["stored_events"], list[str]()
    with monkeypatch.context() as patched:
        later_versions.install(patched.setattr)
        open_store(older, on_point=instants.append).close()
    later_versions.forget()
    expected, whole = rows(older), older.read_bytes()
    statements = sum(len(step.statements) + 1 for step in later_versions.STEPS)
    assert instants[:statements] == [f"store.migration:{n}" for n in range(1, statements + 1)]
    assert instants[-2:] == ["store.before_commit", "store.after_commit"]
    older.write_bytes(before)
    run(older, tmp_path / "kept", *instants)
    for instant in instants:
        kept = tmp_path / "kept" / instant.replace(":", "-")
        made = instant == "store.after_commit"
        assert version(kept / "left" / older.name) == (later_versions.LAST if made else later_versions.PRESENT)
        assert rows(kept / "left" / older.name)["stored_events"] == events
        assert rows(kept / "after" / older.name) == expected, instant
        assert (kept / "after" / older.name).read_bytes() == whole, instant


def test_two_programs_that_migrate_at_once_make_one_migration(older: Path) -> None:
    before = older.read_bytes()
    assert run(older) == "ok 2"
    expected = rows(older)
    for _ in range(3):
        older.write_bytes(before)
        both = [subprocess.Popen(program(older), stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
        assert [one.communicate(timeout=120)[0] for one in both] == ["ok 2"] * 2
        assert rows(older) == expected


@pytest.mark.usefixtures("later")
def test_whoever_only_reads_is_told_the_versions_and_changes_nothing(older: Path, fingerprint: Fingerprint) -> None:
    before = fingerprint()
    with pytest.raises(StoreVersionOlder) as told:
        open_reader(older)
    assert (told.value.found, told.value.supported) == (later_versions.PRESENT, later_versions.LAST)
    assert told.value.distrust is None
    assert fingerprint() == before


@pytest.mark.usefixtures("later")
def test_an_older_store_that_may_not_be_written_is_brought_forward_by_its_adoption(
    older: Path, fingerprint: Fingerprint
) -> None:
    content = older.read_bytes()
    older.rename(older.with_name("original"))
    older.write_bytes(content)
    before = fingerprint()
    store = open_store(older)
    assert store.condition().trust is Trust.COPIED
    with pytest.raises(StoreVersionOlder, match="a copy") as told:
        store.views.sessions()
    assert told.value.distrust is not None
    with pytest.raises(StoreUnavailable):
        store.projections.rebuild()
    assert fingerprint() == before
    assert store.adopt(by="b", note="n", at=NOON).trust is Trust.OK
    assert len(store.views.sessions()) == 2
    store.close()
    assert version(older) == later_versions.LAST
    assert rows(older)["adoptions"][0][1:3] == ("b", "n")


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "change", ["DROP TRIGGER unique_ids_delete", "DROP TABLE session_owners", "CREATE TABLE shelves (x)"]
)
def test_an_older_store_that_is_not_what_its_version_says_is_damaged_and_left_as_it_is(
    older: Path, fingerprint: Fingerprint, change: str
) -> None:
    with closing(sqlite3.connect(older)) as raw:
        raw.execute(change)
    before = fingerprint()
    with pytest.raises(StoreDamaged):
        open_store(older)
    assert fingerprint() == before
    assert version(older) == later_versions.PRESENT


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stored_events SET topic = topic",
        "DELETE FROM stored_events",
        "INSERT INTO stored_events VALUES ('run:x', 1, 't', x'00')",
        "DROP TABLE stored_events",
        "ALTER TABLE stored_events RENAME TO former_events",
        "ALTER TABLE stored_events ADD COLUMN more",
    ],
)
def test_no_step_can_touch_an_event(
    older: Path, fingerprint: Fingerprint, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    rules = ("DROP TRIGGER stored_events_update", "DROP TRIGGER stored_events_delete", statement)
    before = fingerprint()
    with monkeypatch.context() as patched:
        later_versions.install(patched.setattr, (Migration(later_versions.LAST, rules),))
        with pytest.raises(StoreUnavailable, match=r"not authorized|prohibited"):
            open_store(older)
    later_versions.forget()
    assert fingerprint() == before


@pytest.mark.usefixtures("later")
def test_a_store_that_another_program_has_open_is_not_brought_forward_under_it(
    older: Path, fingerprint: Fingerprint
) -> None:
    """The other one may be of the older version, and writes by rules that it has in memory."""
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT COUNT(*) FROM stored_events');"
    command = [sys.executable, "-c", f"{code} print('open', flush=True); sys.stdin.read()", str(older)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "open\n"
        before = fingerprint()
        with pytest.raises(StoreUnavailable, match="has it open"):
            open_store(older, busy_timeout_seconds=0.05)
        assert fingerprint() == before
        other.stdin.close()
    open_store(older).close()
    assert version(older) == later_versions.LAST


WITHOUT_ROOM = """
import resource, sys
from safepoint.domain.errors import StoreFull
from tests.adapters.sqlite import later_versions
size = int(sys.argv[2])
sys.dont_write_bytecode = True  # the interpreter would keep half of a module
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    later_versions.open_once(sys.argv[1])
except StoreFull:
    print("full")
"""


def test_without_room_an_older_store_stays_as_it_is(older: Path, fingerprint: Fingerprint) -> None:
    before = fingerprint()
    command = [sys.executable, "-c", WITHOUT_ROOM, str(older), "8192"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert ended.stdout == "full\n", ended.stderr
    assert fingerprint() == before


@pytest.mark.usefixtures("later")
def test_a_backup_of_an_older_store_is_of_the_present_version_and_leaves_the_store_as_it_is(
    older: Path, tmp_path: Path, fingerprint: Fingerprint
) -> None:
    target = tmp_path / "aside"
    target.mkdir()
    before, events = fingerprint(), rows(older)["stored_events"]
    SqliteBackup(older).back_up(target / "backup", unchecked)
    assert fingerprint() == before
    assert version(older) == later_versions.PRESENT
    assert version(target / "backup") == later_versions.LAST
    assert rows(target / "backup")["stored_events"] == events


@pytest.mark.usefixtures("later")
def test_an_older_backup_is_restored_as_a_store_of_the_present_version(older: Path, tmp_path: Path) -> None:
    content = older.read_bytes()
    path = tmp_path / "restored.sqlite"
    SqliteBackup(path).restore(older, unchecked, NOON)
    assert older.read_bytes() == content
    reader = open_reader(path)
    assert reader.condition().trust is Trust.COPIED
    assert len(reader.views.sessions()) == 2
    reader.close()


@pytest.mark.parametrize("published", range(migrations.OLDEST_VERSION, schema.SCHEMA_VERSION + 1))
def test_every_published_store_is_brought_to_the_last_version(
    path: Path, monkeypatch: pytest.MonkeyPatch, published: int
) -> None:
    path.write_bytes(gzip.decompress((GOLDEN / f"store-v{published}.sqlite.gz").read_bytes()))
    before = rows(path)["stored_events"]
    with monkeypatch.context() as patched:
        later_versions.install(patched.setattr)
        store = open_store(path)
        assert store.adopt(by="b", note="n", at=NOON).trust is Trust.OK
        assert list(store.projections.differences()) == []
        assert list(store.faults()) == []
        store.close()
    later_versions.forget()
    assert version(path) == later_versions.LAST
    assert rows(path)["stored_events"] == before
