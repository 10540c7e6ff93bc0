"""One call, one transaction: what is told at each instant, what an error leaves behind. SPEC section 7."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreDamaged, StoreUnavailable
from safepoint.domain.identifiers import SessionId
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.event_store import Damaged, Fenced, Stored, VersionConflict
from safepoint.ports.store_keeping import Trust

Run = Callable[..., subprocess.CompletedProcess[str]]


class ToldError(Exception):
    """Raised at an instant by a test."""


@pytest.fixture
def points() -> list[str]:
    return []


@pytest.fixture
def told(path: Path, points: list[str]) -> tuple[SqliteStore, RecordedSession]:
    """A store that tells its instants, with a session that is open."""
    store = open_store(path, on_point=points.append)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    points.clear()
    return store, one


def test_an_instant_stands_before_each_statement(told: tuple[SqliteStore, RecordedSession], points: list[str]) -> None:
    store, one = told
    one.keep(store.events, one.called("x"), one.dispatched("x"), one.responded("x"))
    assert points == [
        "store.begin",
        "store.statement:1",  # the call and the dispatch
        "store.statement:2",  # the answer
        "store.statement:3",  # what came of its operation
        "store.statement:4",  # how far the store has come
        "store.before_commit",
        "store.after_commit",
        "store.after_anchor",
    ]
    store.close()


def test_a_group_of_commits_that_all_fit_needs_no_savepoints(
    told: tuple[SqliteStore, RecordedSession], points: list[str]
) -> None:
    store, one = told
    assert store.events.append([one.commit(one.text("a")), one.commit(one.text("b"))]) == [Stored(), Stored()]
    assert points[:-3] == ["store.begin", *(f"store.statement:{number}" for number in (1, 2))]
    store.close()


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_group_with_a_commit_that_does_not_fit_begins_anew_with_savepoints(
    told: tuple[SqliteStore, RecordedSession], points: list[str], at: int
) -> None:
    store, one = told
    other = RecordedSession("other")
    other.own(store.owners)
    other.keep(store.events, *other.opened())
    third = RecordedSession("third")
    third.own(store.owners)
    third.keep(store.events, *third.opened())
    points.clear()
    fitting = [other.commit(other.called("x"), other.dispatched("x")), third.commit(third.text("c"))]
    refused = one.fork()
    refused.commit(refused.text("lost"))  # so that the next one is sealed after an event that was never kept
    commits = [*fitting[:at], refused.commit(refused.text("late")), *fitting[at:]]
    answers = store.events.append(commits)
    assert answers == [*[Stored()] * at, VersionConflict(f"run:{one.run_id()}"), *[Stored()] * (2 - at)]
    assert points.count("store.begin") == 2
    assert points.count("store.after_commit") == 1
    assert store.condition().events == 15
    assert len(store.views.operations(other.run_id())) == 1
    assert list(store.projections.differences()) == []
    assert not store.faults()
    store.close()


def test_a_group_that_is_fenced_in_part_keeps_the_rest(told: tuple[SqliteStore, RecordedSession]) -> None:
    store, one = told
    stranger = RecordedSession("stranger")
    answers = store.events.append(
        [one.commit(one.text("a")), stranger.commit(*stranger.opened()), one.commit(one.text("b"))]
    )
    assert [type(answer) for answer in answers] == [Stored, Fenced, Stored]
    assert store.condition().events == 6
    store.close()


@pytest.mark.parametrize("commits", [1, 2])
@pytest.mark.parametrize("elsewhere", [True, False], ids=["by another process", "by its own"])
def test_an_owner_who_was_overtaken_by_another_process_is_fenced(
    path: Path, recorded: RecordedSession, store: SqliteStore, commits: int, *, elsewhere: bool
) -> None:
    """Who owns a session is not read again for each commit, and yet never believed from before."""
    recorded.keep(store.events, recorded.text("known"))
    other = open_store(path) if elsewhere else store
    seen = other.owners.owner(recorded.session_id)
    assert other.owners.take(recorded.session_id, recorded.guard.incarnation_id, seen) is not None
    answers = store.events.append([recorded.commit(recorded.text(f"{n}")) for n in range(commits)])
    assert [type(answer) for answer in answers] == [Fenced] * commits
    if elsewhere:
        other.close()


def test_refused_commits_commit_nothing(told: tuple[SqliteStore, RecordedSession], points: list[str]) -> None:
    store, one = told
    loser = one.fork()
    one.keep(store.events, one.text("first"))
    points.clear()
    assert store.events.append([loser.commit(loser.text("late"))]) == [VersionConflict(f"run:{one.run_id()}")]
    assert "store.before_commit" not in points
    store.close()


@pytest.mark.parametrize("instant", ["store.begin", "store.statement:1", "store.statement:2", "store.before_commit"])
def test_an_error_before_commit_keeps_nothing_and_the_store_goes_on(path: Path, instant: str) -> None:
    armed = False

    def on_point(point: str) -> None:
        if armed and point == instant:
            raise ToldError

    store = open_store(path, on_point=on_point)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    armed = True
    with pytest.raises(ToldError):
        store.events.append([one.fork().commit(one.called("x"), one.dispatched("x"))])
    armed = False
    assert store.condition()[4:] == (4, 4)
    one.keep(store.events, one.text("next"))
    assert list(store.views.operations(one.run_id())) == []
    assert list(store.projections.differences()) == []
    store.close()


@pytest.mark.parametrize("instant", ["store.after_commit", "store.after_anchor"])
def test_an_error_after_commit_keeps_all_and_the_store_is_looked_at_again(path: Path, instant: str) -> None:
    armed = False

    def on_point(point: str) -> None:
        if armed and point == instant:
            raise ToldError

    store = open_store(path, on_point=on_point)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    armed = True
    with pytest.raises(ToldError):
        store.events.append([one.commit(one.text("kept"))])
    armed = False
    assert store.condition().events == 5
    one.keep(store.events, one.text("next"))
    assert store.condition()[4:] == (6, 6)
    store.close()


def test_a_writer_waits_for_another_and_then_goes_on(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    """Field report r3-080: reading first and writing then is not refused at once while another writes."""
    with store.events.snapshot() as view:
        view.last(f"run:{recorded.run_id()}")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    released = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    released.start()
    recorded.keep(store.events, recorded.text("after the other"))
    released.join()
    other.close()


def test_a_lock_that_does_not_end_is_told(path: Path, recorded: RecordedSession, raw: sqlite3.Connection) -> None:
    store = open_store(path, busy_timeout_seconds=0.1)
    raw.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    for write in (
        lambda: store.events.append([recorded.commit(recorded.text("no"))]),
        lambda: store.owners.release(*recorded.guard),
        store.projections.rebuild,
    ):
        with pytest.raises(StoreUnavailable, match="locked"):
            write()
    assert time.monotonic() - began >= 0.3
    raw.execute("ROLLBACK")
    assert store.condition().trust is Trust.OK
    other = RecordedSession("two")
    other.own(store.owners)
    other.keep(store.events, *other.opened())
    store.close()


def test_damage_under_one_commit_leaves_its_neighbours(
    path: Path, recorded: RecordedSession, store: SqliteStore, raw: sqlite3.Connection
) -> None:
    """Field report r3-156: a damaged row of one session does not keep another from writing."""
    other = RecordedSession("two")
    other.own(store.owners)
    other.keep(store.events, *other.opened())
    store.close()
    store = open_store(path)
    damage_page_of(path, raw, "operation_outcomes")
    broken = recorded.commit(recorded.called("x"), recorded.dispatched("x"), recorded.responded("x"))
    answers = store.events.append([other.commit(other.text("1")), broken, other.commit(other.text("2"))])
    assert [type(answer) for answer in answers] == [Stored, Damaged, Stored]
    (alone,) = store.events.append([broken])
    assert isinstance(alone, Damaged)
    store.close()


def damage_page_of(path: Path, raw: sqlite3.Connection, table: str) -> None:
    """Overwrite the root page of a table in the database file."""
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (page,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    (size,) = raw.execute("PRAGMA page_size").fetchone()
    raw.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_damaged_events_are_told_and_others_are_read(
    path: Path, recorded: RecordedSession, store: SqliteStore, raw: sqlite3.Connection
) -> None:
    store.close()
    damage_page_of(path, raw, "unique_ids")
    reader = open_reader(path)
    with reader.events.snapshot() as view:
        assert len(view.read(f"run:{recorded.run_id()}")) == 2
        with pytest.raises(StoreDamaged):
            view.locate(recorded.event_id())
    reader.close()


def test_a_view_ends_where_its_error_does(recorded: RecordedSession, store: SqliteStore) -> None:
    def fail() -> None:
        with store.events.snapshot() as view:
            view.read("session:session-one")
            raise ToldError

    with pytest.raises(ToldError):
        fail()
    recorded.keep(store.events, recorded.text("next"))
    with store.events.snapshot() as view:
        assert len(view.read(f"run:{recorded.run_id()}")) == 3


def test_owners_are_taken_in_an_immediate_transaction(
    path: Path, recorded: RecordedSession, store: SqliteStore
) -> None:
    """Two stores, one row: whoever looked before the other wrote gets nothing."""
    other = open_store(path)
    session = SessionId("contested")
    seen = other.owners.owner(session)
    assert store.owners.take(session, recorded.guard.incarnation_id, seen) is not None
    assert other.owners.take(session, recorded.guard.incarnation_id, seen) is None
    other.close()


def test_what_another_process_wrote_is_built_upon(path: Path, recorded: RecordedSession, store: SqliteStore) -> None:
    """The digests and the position that a connection remembers are only shortcuts."""
    other = open_store(path)
    for n in range(70):
        recorded.keep((store, other)[n % 2].events, recorded.text(f"{n}"))
    assert store.condition() == other.condition()
    assert store.condition()[4:] == (74, 74)
    other.close()
