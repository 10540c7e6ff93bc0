"""A store that lost its tail, or is not where it was, says so and is not written. SPEC section 6."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.sqlite.anchor import Anchor
from safepoint.adapters.sqlite.anchor_raising import AnchorForRaising
from safepoint.adapters.sqlite.anchor_record import AnchorReading, AnchorRecord, NoAnchor
from safepoint.adapters.sqlite.place import FileIdentity
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreBehindAnchor, StoreNotAdopted, StoreUnavailable
from safepoint.domain.identifiers import RunId
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.event_store import Stored
from safepoint.ports.store_keeping import StoreCondition, Trust

from .log_bytes import used

Run = Callable[..., subprocess.CompletedProcess[str]]
DIGEST = "cd" * 32
RUN = RunId("run-one-a")


def anchor_of(path: Path) -> Path:
    return Path(f"{path}.anchor")


def look(path: Path) -> tuple[StoreCondition, bool]:
    """How a reader finds the store, and whether its run is foreign."""
    reader = open_reader(path)
    try:
        with reader.events.snapshot() as view:
            return reader.condition(), view.standing(RUN).foreign
    finally:
        reader.close()


def assert_not_written(path: Path, fingerprint: Callable[[], dict[str, str]], trust: Trust) -> None:
    """Every writing use is refused, and changes nothing; reading goes on."""
    error = StoreNotAdopted if trust is Trust.COPIED else StoreBehindAnchor
    before = fingerprint()
    store = open_store(path)
    one = RecordedSession("late")
    for write in (
        lambda: store.events.append([one.commit(*one.opened())]),
        lambda: one.own(store.owners),
        lambda: store.owners.release(*one.guard),
        store.projections.rebuild,
    ):
        with pytest.raises(error, match="until a person adopts it"):
            write()
    with store.events.snapshot() as view:
        assert view.read("session:session-one")
    assert store.condition().trust is trust
    store.close()
    assert fingerprint() == before


def adopt_and_go_on(path: Path) -> None:
    """After adoption the store is written again; what was in it stays foreign, what follows is not."""
    store = open_store(path)
    assert store.adopt(by="somebody", note="I know what is lost", at=NOON).trust is Trust.OK
    assert store.condition().generation == 2
    one = RecordedSession("later")
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    with store.events.snapshot() as view:
        assert view.standing(RUN).foreign
        assert not view.standing(one.run_id()).foreign
    store.close()
    assert look(path)[0].trust is Trust.OK


def test_a_store_killed_between_commit_and_anchor_is_ahead_of_it_and_trusted(path: Path, program: Run) -> None:
    killed = program("die-at", "store.after_commit")
    assert killed.returncode == -signal.SIGKILL
    condition, foreign = look(path)
    assert (condition.trust, condition.events, condition.anchored_events) == (Trust.OK, 5, 4)
    assert not foreign
    store = open_store(path)
    one = RecordedSession("two")
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    assert store.condition()[4:] == (9, 9)
    store.close()


@pytest.mark.parametrize("lost", ["removed", "emptied", "cut"])
def test_a_wal_lost_after_a_kill_is_noticed(
    path: Path, program: Run, fingerprint: Callable[[], dict[str, str]], lost: str
) -> None:
    assert program("write-and-die", 10).returncode == -signal.SIGKILL
    wal = Path(f"{path}-wal")
    Path(f"{path}-shm").unlink()
    if lost == "removed":
        wal.unlink()
    else:
        os.truncate(wal, 0 if lost == "emptied" else used(wal.read_bytes()) * 2 // 3)
    condition, foreign = look(path)
    assert condition.trust is Trust.BEHIND_ANCHOR
    assert condition.events < 14
    assert condition.anchored_events == 14
    assert foreign
    if lost == "cut":
        assert_not_written(path, fingerprint, Trust.BEHIND_ANCHOR)
    adopt_and_go_on(path)


def test_yesterdays_database_with_todays_anchor_is_noticed(
    path: Path, recorded: RecordedSession, store: SqliteStore, fingerprint: Callable[[], dict[str, str]]
) -> None:
    store.close()
    yesterday = path.read_bytes()
    today = open_store(path)
    recorded.keep(today.events, recorded.text("today"))
    today.close()
    path.write_bytes(yesterday)
    assert look(path)[0].trust is Trust.BEHIND_ANCHOR
    assert_not_written(path, fingerprint, Trust.BEHIND_ANCHOR)
    adopt_and_go_on(path)


def test_a_store_that_went_on_from_yesterday_does_not_match_todays_anchor(
    path: Path, recorded: RecordedSession, store: SqliteStore, fingerprint: Callable[[], dict[str, str]]
) -> None:
    store.close()
    yesterday, yesterdays_anchor = path.read_bytes(), anchor_of(path).read_bytes()
    other = recorded.fork()
    today = open_store(path)
    recorded.keep(today.events, recorded.text("today"))
    today.close()
    todays_anchor = anchor_of(path).read_bytes()
    path.write_bytes(yesterday)
    anchor_of(path).write_bytes(yesterdays_anchor)
    branch = open_store(path)
    other.keep(branch.events, other.text("another today"))
    other.keep(branch.events, other.text("and more"))
    branch.close()
    anchor_of(path).write_bytes(todays_anchor)
    assert look(path)[0].trust is Trust.ANCHOR_MISMATCH
    assert_not_written(path, fingerprint, Trust.ANCHOR_MISMATCH)
    adopt_and_go_on(path)


def test_an_equal_last_event_does_not_hide_another_one_before_it(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    """The digest is over all events in their order: an import repeated after a loss would end in the same bytes."""
    two = RecordedSession("two")
    two.own(store.owners)
    two.keep(store.events, *two.opened())
    last = two.text("the same in both")
    store.close()
    yesterday, yesterdays_anchor = path.read_bytes(), anchor_of(path).read_bytes()
    other, other_two = recorded.fork(), two.fork()
    today = open_store(path)
    recorded.keep(today.events, recorded.text("today"))
    two.keep(today.events, last)
    today.close()
    todays_anchor = anchor_of(path).read_bytes()
    path.write_bytes(yesterday)
    anchor_of(path).write_bytes(yesterdays_anchor)
    branch = open_store(path)
    other.keep(branch.events, other.text("another today"))
    other_two.keep(branch.events, last)
    branch.close()
    anchor_of(path).write_bytes(todays_anchor)
    assert look(path)[0].trust is Trust.ANCHOR_MISMATCH


@pytest.mark.parametrize("ahead", [1, 1000])
def test_an_open_store_that_falls_behind_its_anchor_is_not_written(
    path: Path, recorded: RecordedSession, store: SqliteStore, ahead: int
) -> None:
    condition = store.condition()
    with Anchor(anchor_of(path), 1.0).exclusively() as held:
        held.write(AnchorRecord(condition.store_id, condition.events + ahead, DIGEST))
    with pytest.raises(StoreBehindAnchor):
        store.events.append([recorded.commit(recorded.text("no"))])
    assert store.condition().events == condition.events


def test_a_missing_anchor_is_noticed(
    path: Path, recorded: RecordedSession, store: SqliteStore, fingerprint: Callable[[], dict[str, str]]
) -> None:
    store.close()
    anchor_of(path).unlink()
    condition, foreign = look(path)
    assert (condition.trust, condition.anchored_events, foreign) == (Trust.ANCHOR_MISSING, None, True)
    assert_not_written(path, fingerprint, Trust.ANCHOR_MISSING)
    assert not anchor_of(path).exists()
    adopt_and_go_on(path)


def test_any_flipped_byte_in_the_anchor_is_noticed(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    store.close()
    content = anchor_of(path).read_bytes()
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1
        anchor_of(path).write_bytes(bytes(flipped))
        assert Anchor(anchor_of(path), 1.0).read() is NoAnchor.UNREADABLE, position
    condition, foreign = look(path)
    assert (condition.trust, foreign) == (Trust.ANCHOR_MISMATCH, True)


def test_the_anchor_of_another_store_is_noticed(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    other = path.with_name("other.sqlite")
    open_store(other).close()
    shutil.copyfile(anchor_of(other), anchor_of(path))
    assert look(path)[0].trust is Trust.ANCHOR_MISMATCH
    assert "another store" in look(path)[0].detail


@pytest.mark.parametrize("events", [1, 63, 64, 65, 130, 200])
def test_an_anchor_of_any_age_is_compared(
    path: Path, recorded: RecordedSession, store: SqliteStore, events: int
) -> None:
    """Control rows stand between the events now and then: each anchor in between is worked out from the last of
    them.
    """
    anchors = []
    for n in range(events):
        recorded.keep(store.events, recorded.text(f"{n}"))
        anchors.append(anchor_of(path).read_bytes())
    store.close()
    for old in (anchors[0], anchors[events // 2], anchors[-1]):
        anchor_of(path).write_bytes(old)
        assert look(path)[0].trust is Trust.OK
    forged = AnchorRecord(look(path)[0].store_id, events // 2 + 5, DIGEST)
    with Anchor(anchor_of(path), 1.0).exclusively() as held:
        held.write(forged)
    assert look(path)[0].trust is Trust.ANCHOR_MISMATCH


def test_large_events_are_worked_out_too(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    for n in range(5):
        recorded.keep(store.events, recorded.text(f"{n}" * 70_000), recorded.text("small"))
    assert look(path)[0] == store.condition()
    assert store.condition().trust is Trust.OK


def test_a_copy_is_noticed_and_written_only_after_adoption(
    path: Path, recorded: RecordedSession, store: SqliteStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store.close()
    copy = tmp_path_factory.mktemp("copy") / path.name
    for source, target in ((path, copy), (anchor_of(path), anchor_of(copy))):
        shutil.copyfile(source, target)
    condition, foreign = look(copy)
    assert (condition.trust, foreign) == (Trust.COPIED, True)

    def files() -> dict[str, str]:
        return {
            f.name: f.read_bytes().hex() for f in copy.parent.iterdir() if f.stat().st_size and "-shm" not in f.name
        }

    assert_not_written(copy, files, Trust.COPIED)
    adopt_and_go_on(copy)
    assert look(path)[0].trust is Trust.OK


def test_a_copy_without_its_anchor_is_a_copy(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    store.close()
    copy = path.with_name("copy.sqlite")
    shutil.copyfile(path, copy)
    assert look(copy)[0].trust is Trust.COPIED
    adopt_and_go_on(copy)


def test_a_copy_that_also_lost_its_end_is_said_to_be_both(
    path: Path, recorded: RecordedSession, store: SqliteStore, fingerprint: Callable[[], dict[str, str]]
) -> None:
    store.close()
    copy = path.with_name("copy.sqlite")
    shutil.copyfile(path, copy)
    shutil.copyfile(anchor_of(path), anchor_of(copy))
    kept = look(path)[0]
    with Anchor(anchor_of(copy), 1.0).exclusively() as held:
        held.write(AnchorRecord(kept.store_id, kept.events + 2, DIGEST))
    condition, foreign = look(copy)
    assert (condition.trust, foreign) == (Trust.COPIED_BEHIND_ANCHOR, True)
    assert "not the file that was recorded" in condition.detail
    assert f"{kept.events + 2} events were kept, and {kept.events} are there" in condition.detail
    assert_not_written(copy, fingerprint, Trust.COPIED_BEHIND_ANCHOR)
    adopt_and_go_on(copy)


def test_a_copy_that_went_on_from_yesterday_does_not_hold_what_todays_anchor_says(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    store.close()
    copy = path.with_name("copy.sqlite")
    shutil.copyfile(path, copy)
    today = open_store(path)
    recorded.keep(today.events, recorded.text("today"))
    today.close()
    branch = open_store(copy)
    branch.adopt(by="somebody", note="two went on", at=NOON)
    other = RecordedSession("two")
    other.own(branch.owners)
    other.keep(branch.events, *other.opened())
    branch.close()
    shutil.copyfile(copy, f"{copy}.copy")
    Path(f"{copy}.copy").rename(path)
    condition, _ = look(path)
    assert condition.trust is Trust.COPIED_BEHIND_ANCHOR
    assert "does not hold the events that its anchor was made for" in condition.detail


def test_the_anchor_is_read_before_the_view_is_opened(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    """A commit between the two puts the store ahead of its anchor; the other way round it would be a false alarm."""

    class Overtaken(Anchor):
        def read(self, *, unlocked: bool = False) -> AnchorReading:
            recorded.keep(store.events, recorded.text("meanwhile"))
            return super().read(unlocked=unlocked)

    reader = open_reader(path)
    reader._readers._anchor = Overtaken(anchor_of(path), 1.0)
    for _ in range(3):
        condition = reader.condition()
        assert (condition.trust, condition.events - (condition.anchored_events or 0)) == (Trust.OK, 0)
    reader.close()


def test_a_renamed_store_is_the_same_store(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    store.close()
    moved = path.with_name("moved.sqlite")
    path.rename(moved)
    anchor_of(path).rename(anchor_of(moved))
    condition, foreign = look(moved)
    assert (condition.trust, foreign) == (Trust.OK, False)


def test_a_store_is_known_by_its_real_path(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    link = path.with_name("link.sqlite")
    link.symlink_to(path)
    other = open_store(link)
    recorded.keep(other.events, recorded.text("through the link"))
    assert store.condition()[4:] == (5, 5)
    other.close()
    assert not anchor_of(link).exists()


@pytest.mark.parametrize(
    ("recorded_identity", "same"),
    [
        (FileIdentity("1", "2", "boot"), True),
        (FileIdentity("9", "2", "boot"), False),
        (FileIdentity("1", "9", "boot"), False),
        (FileIdentity("9", "2", "earlier boot"), True),
        (FileIdentity("1", "9", "earlier boot"), False),
        (FileIdentity("1", "2@5.0", "boot"), True),
    ],
)
def test_device_numbers_are_compared_within_one_boot(recorded_identity: FileIdentity, same: bool) -> None:
    assert FileIdentity("1", "2", "boot").same_file_as(recorded_identity) is same


def test_a_file_with_the_number_of_a_removed_one_is_another_file() -> None:
    assert FileIdentity("1", "2@5.0", "boot").same_file_as(FileIdentity("1", "2@5.0", "earlier boot"))
    assert not FileIdentity("1", "2@6.0", "boot").same_file_as(FileIdentity("1", "2@5.0", "boot"))
    assert not FileIdentity("1", "3@5.0", "boot").same_file_as(FileIdentity("1", "2@5.0", "boot"))


def test_where_boots_are_not_told_apart_the_inode_decides() -> None:
    assert FileIdentity("1", "2", None).same_file_as(FileIdentity("9", "2", None))


def test_an_adoption_is_recorded(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    store.adopt(by="somebody", note="because", at=NOON)
    with sqlite3.connect(path) as raw:
        rows = raw.execute("SELECT generation, adopted_by, note, adopted_at, found FROM adoptions").fetchall()
    raw.close()
    assert rows == [(2, "somebody", "because", NOON, "ok: the store agrees with its anchor")]


def test_a_database_replaced_while_it_is_open_is_not_written(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    other = path.with_name("other.sqlite")
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("VACUUM INTO ?", (str(other),))
    raw.close()
    other.rename(path)
    with pytest.raises(StoreUnavailable, match="replaced"):
        store.events.append([recorded.commit(recorded.text("into nowhere"))])
    assert store.condition().trust is Trust.COPIED


def test_an_anchor_that_cannot_be_raised_grants_nothing(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    """The commit is durable, and whoever asked for it is told that this is not known."""
    store.events.append([])
    recorded.keep(store.events, recorded.text("opens the connection"))
    with anchor_of(path).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        store.close()
        blocked = open_store(path, busy_timeout_seconds=0.05)
        with pytest.raises(StoreUnavailable, match="anchor"):
            blocked.events.append([recorded.commit(recorded.text("not granted"))])
        fcntl.flock(other, fcntl.LOCK_UN)
    recorded = RecordedSession("two")
    recorded.own(blocked.owners)
    assert blocked.events.append([recorded.commit(*recorded.opened())]) == [Stored()]
    blocked.close()


def test_an_anchor_removed_after_commit_grants_nothing(path: Path) -> None:
    armed = False

    def on_point(point: str) -> None:
        if armed and point == "store.after_commit":
            anchor_of(path).write_bytes(b"damaged")

    store = open_store(path, on_point=on_point)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    armed = True
    with pytest.raises(StoreUnavailable):
        store.events.append([one.commit(one.text("not granted"))])
    armed = False
    with pytest.raises(StoreBehindAnchor):
        store.events.append([one.commit(one.text("after it"))])
    assert store.condition().trust is Trust.ANCHOR_MISMATCH
    store.close()


class TestTheFile:
    RECORD = AnchorRecord("ab" * 16, 7, DIGEST)

    def raising(self, tmp_path: Path) -> AnchorForRaising:
        anchor = Anchor(tmp_path / "anchor", 0.05)
        with anchor.exclusively() as held:
            assert held.read() is NoAnchor.MISSING
            held.write(self.RECORD)
        raising = AnchorForRaising(anchor)
        assert raising.read() == self.RECORD
        return raising

    def test_it_is_raised_and_never_lowered(self, tmp_path: Path) -> None:
        raising = self.raising(tmp_path)
        higher, lower = self.RECORD._replace(counter=9), self.RECORD._replace(counter=8)
        raising.raise_to(higher)
        raising.raise_to(lower)
        assert raising.read() == higher
        assert Anchor(tmp_path / "anchor", 0.05).read() == higher
        raising.close()

    def test_another_store_does_not_raise_it(self, tmp_path: Path) -> None:
        raising = self.raising(tmp_path)
        with pytest.raises(StoreUnavailable, match="another store"):
            raising.raise_to(AnchorRecord("cd" * 16, 9, DIGEST))
        assert raising.read() == self.RECORD
        raising.close()

    def test_a_held_lock_is_waited_for_and_then_told(self, tmp_path: Path) -> None:
        raising = self.raising(tmp_path)
        with (tmp_path / "anchor").open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(StoreUnavailable, match="locked"):
                raising.raise_to(self.RECORD._replace(counter=9))
        raising.close()

    def test_a_file_that_took_its_name_is_read(self, tmp_path: Path) -> None:
        raising = self.raising(tmp_path)
        other = Anchor(tmp_path / "other", 0.05)
        with other.exclusively() as held:
            held.write(self.RECORD._replace(counter=3))
        other.path.rename(tmp_path / "anchor")
        assert raising.read() == self.RECORD._replace(counter=3)
        (tmp_path / "anchor").unlink()
        assert raising.read() is NoAnchor.MISSING
        with pytest.raises(StoreUnavailable, match="missing"):
            raising.raise_to(self.RECORD)

    @pytest.mark.parametrize("content", [b"", b"x", b"safepoint-anchor-v1 a 1 b c\n", b"\xff" * 160])
    def test_what_is_no_anchor_is_unreadable(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "anchor").write_bytes(content)
        assert Anchor(tmp_path / "anchor", 0.05).read() is NoAnchor.UNREADABLE

    def test_a_longer_or_shorter_file_is_unreadable(self, tmp_path: Path) -> None:
        self.raising(tmp_path).close()
        content = (tmp_path / "anchor").read_bytes()
        for wrong in (content + b"\n", content[:-1], content + content):
            (tmp_path / "anchor").write_bytes(wrong)
            assert Anchor(tmp_path / "anchor", 0.05).read() is NoAnchor.UNREADABLE


def test_damage_in_the_newest_events_of_one_session_does_not_stop_another(path: Path) -> None:
    store = open_store(path)
    one, two = RecordedSession("one"), RecordedSession("two")
    for session in (one, two):
        session.own(store.owners)
        session.keep(store.events, *session.opened())
    one.keep(store.events, one.text("the end is damaged"))
    store.close()
    whole = path.read_bytes()
    assert whole.count(b"the end is damaged") == 1
    path.write_bytes(whole.replace(b"the end is damaged", b"the END is damaged"))
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    assert store.events.append([two.commit(two.text("goes on"))]) == [Stored()]
    store.close()


def test_of_every_transaction_the_newest_thousand_positions_are_kept(path: Path) -> None:
    store = open_store(path)
    one = RecordedSession("one")
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    for number in range(1300):
        one.keep(store.events, one.text(str(number)))
    newest = store.condition().events
    store.close()
    with sqlite3.connect(path) as connection:
        kept = [counter for (counter,) in connection.execute("SELECT counter FROM commits ORDER BY counter")]
    assert kept[-1000:] == list(range(newest - 999, newest + 1))
    assert all(counter % 64 == 0 for counter in kept if counter < newest - 1100)
    assert kept[0] == 0
