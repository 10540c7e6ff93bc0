"""Projections are rebuilt, never believed. SPEC section 7 and F12."""

from __future__ import annotations

import itertools
import re
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.sqlite import projection_tables
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.application.paging import every
from safepoint.domain.errors import StoreDamaged
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import WatchStatus
from safepoint.domain.projections import TABLES
from safepoint.ports import views as rows
from safepoint.ports.contract_kit.recorded_runs import RecordedSession


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("runs", rows.RunRow),
        ("operations", rows.OperationRow),
        ("permissions", rows.PermissionRow),
        ("continuations", rows.ContinuationRow),
    ],
)
def test_a_row_has_the_columns_of_its_projection(table: str, row: type[tuple[object, ...]]) -> None:
    assert list(row._fields) == list(TABLES[table].columns)  # type: ignore[attr-defined]


@pytest.fixture
def many(recorded: RecordedSession, store: SqliteStore) -> RecordedSession:
    recorded.keep(store.events, recorded.called("x"), recorded.dispatched("x"), recorded.asked("y"))
    recorded.keep(store.events, recorded.called("z"), recorded.dispatched("z"), recorded.responded("z"))
    recorded.keep(store.events, recorded.ended())
    recorded.keep(store.events, *recorded.opened("b"), recorded.ended("b", RunStatus.COMPLETED))
    return recorded


def test_a_tampered_projection_is_named_and_mended(
    many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection
) -> None:
    raw.execute("UPDATE runs SET status = 'completed' WHERE run_id = 'run-one-a'")
    raw.execute("DELETE FROM operation_outcomes")
    raw.execute("INSERT INTO turns (turn_id, run_id) VALUES ('ghost', 'ghost')")
    found = {(one.table, one.key): one for one in store.projections.differences()}
    assert set(found) == {
        ("runs", ("run-one-a",)),
        ("operation_outcomes", ("operation-one-a-z",)),
        ("turns", ("ghost", "ghost")),
    }
    tampered = found["runs", ("run-one-a",)]
    assert tampered.found is not None
    assert tampered.expected is not None
    assert (tampered.found["status"], tampered.expected["status"]) == ("completed", "failed")
    assert found["operation_outcomes", ("operation-one-a-z",)].found is None
    assert found["turns", ("ghost", "ghost")].expected is None
    store.projections.rebuild()
    assert list(store.projections.differences()) == []


def test_a_rebuild_never_drops_a_table_that_has_rows_because_sqlite_would_keep_them_all_in_memory(
    many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_tables, "ROWS_AT_ONCE", 1)
    raw.execute("BEGIN")
    for kind in ("view", "index"):
        for statement in projection_tables.drop_statements(raw, kind):
            raw.execute(statement)
    for statement in projection_tables.thinning_statements(raw):
        assert statement.endswith("LIMIT 1)")
        while raw.execute(statement).rowcount > 0:
            pass
    left = {name: raw.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in projection_tables.WRITTEN}
    assert left == dict.fromkeys(projection_tables.WRITTEN, 0)
    raw.execute("ROLLBACK")
    told: list[str] = []
    assert store.projections._writer is not None
    store.projections._writer._connection.set_trace_callback(told.append)
    store.projections.rebuild()
    thinned = told[: next(place for place, statement in enumerate(told) if statement.startswith("DROP table"))]
    assert {statement.split()[2] for statement in thinned if statement.startswith("DELETE")} == set(
        projection_tables.WRITTEN
    )
    assert list(store.projections.differences()) == []


def test_the_journal_shows_every_fact_of_an_operation_in_order(
    recorded: RecordedSession, store: SqliteStore, raw: sqlite3.Connection
) -> None:
    recorded.keep(store.events, recorded.called("x"), recorded.dispatched("x"), recorded.text("between"))
    recorded.keep(store.events, recorded.responded("x"), *recorded.recovery_of("x"))
    rows = raw.execute(
        "SELECT run_id, sequence, operation_id, entry FROM operation_journal ORDER BY sequence"
    ).fetchall()
    entries = ["dispatched", "responded", "redelivery_started", "reconciled", "recovery_decided", "attested"]
    assert rows == [
        ("run-one-a", sequence, "operation-one-a-x", entry)
        for sequence, entry in zip((4, 6, 7, 8, 9, 10), entries, strict=True)
    ]
    assert list(store.projections.differences()) == []


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE operation_outcomes",
        "DROP VIEW operations",
        "DROP VIEW operation_journal",
        "DROP INDEX sessions_newest",
        "ALTER TABLE runs DROP COLUMN model",
        "ALTER TABLE turns ADD COLUMN x",
    ],
)
def test_projections_of_another_shape_are_made_again_when_the_store_is_opened(
    path: Path, many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection, change: str
) -> None:
    before = (store.views.sessions(), store.views.runs(many.session_id), store.views.unsettled())
    store.close()
    raw.execute(change)
    raw.close()
    again = open_store(path)
    assert (again.views.sessions(), again.views.runs(many.session_id), again.views.unsettled()) == before
    assert list(again.projections.differences()) == []
    again.close()


def another_view(name: str, select: str) -> tuple[str, ...]:
    return f"DROP VIEW {name}", f"CREATE VIEW {name} AS {select}"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("operations", ("DROP VIEW operations",)),
        ("operation_journal", ("DROP VIEW operation_journal",)),
        ("operations", another_view("operations", "SELECT * FROM operation_outcomes")),
        ("operations", another_view("operations", "SELECT a FROM nowhere")),
        ("operation_journal", another_view("operation_journal", "SELECT 1 AS operation_id WHERE 0")),
        ("sessions", ("CREATE TRIGGER other AFTER INSERT ON sessions BEGIN DELETE FROM sessions; END",)),
        ("runs", ("CREATE TRIGGER other BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END",)),
        (
            "operations",
            ("CREATE TRIGGER other INSTEAD OF INSERT ON operations BEGIN DELETE FROM sessions; END",),
        ),
    ],
)
def test_a_view_that_somebody_changed_is_named_and_made_again(
    many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection, name: str, changes: tuple[str, ...]
) -> None:
    for change in changes:
        raw.execute(change)
    assert [(one.table, one.key) for one in store.projections.differences()] == [(name, ())]
    store.projections.rebuild()
    assert list(store.projections.differences()) == []
    assert raw.execute("SELECT name FROM sqlite_master WHERE name = 'other'").fetchall() == []


def test_a_view_of_another_version_that_shows_the_same_is_no_damage(
    many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection
) -> None:
    for name, statement in projection_tables.sql_views().items():
        raw.execute(f"DROP VIEW {name}")
        raw.execute(statement.replace(" AS SELECT ", " AS SELECT /* of another version */ ", 1))
    assert list(store.projections.differences()) == []
    raw.execute("DROP VIEW operation_journal")
    twice = projection_tables.sql_views()["operation_journal"]
    select = twice.partition(" AS ")[2]
    raw.execute(f"{twice} UNION ALL {select}")
    assert [one.table for one in store.projections.differences()] == ["operation_journal"]


def test_a_reader_says_that_the_views_are_to_be_rebuilt(
    path: Path, many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection
) -> None:
    store.close()
    raw.execute("DROP TABLE operation_outcomes")
    raw.close()
    reader = open_reader(path)
    with pytest.raises(StoreDamaged, match="rebuild"):
        reader.views.sessions()
    with reader.events.snapshot() as view:
        assert view.read(f"run:{many.run_id()}")
    reader.close()


def damage(raw: sqlite3.Connection, where: str, state: bytes) -> None:
    """Change stored bytes as a bad disk would: the rules of the store are taken out for the moment."""
    (rule,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'stored_events_update'").fetchone()
    raw.execute("DROP TRIGGER stored_events_update")
    raw.execute(f"UPDATE stored_events SET state = ? WHERE {where}", (state,))
    raw.execute(rule)


@pytest.mark.parametrize("state", [b"", b"\x00" * 100, b"{}", b'{"type":"session.opened.v1"}', b"[1]", b"\xff\xfe"])
def test_a_session_whose_events_cannot_be_read_is_still_listed(
    many: RecordedSession, store: SqliteStore, raw: sqlite3.Connection, state: bytes
) -> None:
    """Field report r3-069: three sessions, one of them unreadable, are three rows."""
    for name in ("two", "three"):
        other = RecordedSession(name)
        other.own(store.owners)
        other.keep(store.events, *other.opened())
    damage(raw, "originator_id IN ('session:session-two', 'run:run-two-a')", state)
    rebuilt = store.projections.rebuild()
    assert rebuilt.unreadable == 4
    assert {row.session_id for row in store.views.sessions()} == {"session-one", "session-two", "session-three"}
    bare = store.views.session(RecordedSession("two").session_id)
    assert bare is not None
    assert (bare.opened_at, bare.head_run_id) == (None, None)
    assert store.views.run(RecordedSession("two").run_id()) is not None
    assert len(store.views.runs(many.session_id)) == 2
    assert list(store.projections.differences()) == []


def test_readers_see_whole_views_while_they_are_rebuilt(path: Path, many: RecordedSession, store: SqliteStore) -> None:
    expected = store.views.sessions()
    seen: list[object] = []
    done = threading.Event()
    looked = threading.Event()

    def look() -> None:
        reader = open_reader(path, busy_timeout_seconds=30)
        while not done.is_set():
            seen.append(reader.views.sessions())
            looked.set()
        reader.close()

    looker = threading.Thread(target=look)
    looker.start()
    assert looked.wait(60)
    for _ in range(5):
        store.projections.rebuild(lambda done, total: None)
    done.set()
    looker.join(60)
    assert len(seen) >= 1
    assert all(one == expected for one in seen)


def test_a_rebuild_that_fails_changes_nothing(
    many: RecordedSession, store: SqliteStore, fingerprint: Callable[[], dict[str, str]]
) -> None:
    before = store.views.sessions()

    def fail(done: int, total: int) -> None:
        raise RuntimeError("the progress bar broke")

    with pytest.raises(RuntimeError):
        store.projections.rebuild(fail)
    assert store.views.sessions() == before
    assert list(store.projections.differences()) == []
    many.keep(store.events, *many.opened("c"))


@pytest.mark.parametrize(
    ("sql", "arguments"),
    [
        ("sessions", ()),
        ("sessions after", ()),
        ("runs", ()),
        ("open runs", ()),
        ("operations", ()),
        ("unsettled", ()),
        ("unsettled of a session", ()),
    ],
)
def test_lists_are_read_from_indexes(
    many: RecordedSession, store: SqliteStore, sql: str, arguments: tuple[object, ...]
) -> None:
    """A page costs what the page costs: no list scans events, runs or operations (field report r3-153)."""
    views = store.views
    asked: list[str] = []
    with store.events.snapshot() as view:
        connection = view.connection  # type: ignore[attr-defined]
    connection.set_trace_callback(asked.append)
    first = views.sessions()[0]
    looks: dict[str, Callable[[], object]] = {
        "sessions": lambda: views.sessions(limit=2),
        "sessions after": lambda: views.sessions(after=first.key),
        "runs": lambda: views.runs(many.session_id),
        "open runs": lambda: views.open_runs(many.session_id),
        "operations": lambda: views.operations(many.run_id()),
        "unsettled": lambda: views.unsettled(),  # noqa: PLW0108
        "unsettled of a session": lambda: views.unsettled(many.session_id),
    }
    asked.clear()
    looks[sql]()
    connection.set_trace_callback(None)
    (query,) = [one for one in asked if "FROM" in one and "MAX(rowid)" not in one]
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert plan
    for step in plan:
        assert "TEMP B-TREE" not in step or sql.startswith("unsettled"), (query, plan)
        assert not re.search("SCAN (r|e|o|operations|stored_events|runs)\\b", step) or "INDEX" in step, (query, plan)


def test_a_page_of_what_is_in_doubt_reads_the_runs_of_its_own_sessions_only(store: SqliteStore) -> None:
    """So to list all of it costs what it holds, not its square."""
    costs: dict[int, tuple[int, int]] = {}
    for last in (20, 80):
        for number in range(len(costs) and 20, last):
            one = RecordedSession(f"{number:03d}")
            one.own(store.owners)
            one.keep(
                store.events,
                *one.opened(),
                *(made for call in "ab" for made in (one.called(call), one.dispatched(call))),
            )
            one.keep(store.events, one.ended(), one.watched("a", WatchStatus.UNKNOWN))
        costs[last] = (_steps(store, _pages(store, last)), _steps(store, lambda: store.views.unsettled(limit=10)))
    assert costs[80][0] < 4.2 * costs[20][0], "a listing that is four times as long costs four times as much"
    assert costs[80][1] < 1.1 * costs[20][1], "and a page of it what a page costs"


def _pages(store: SqliteStore, sessions: int) -> Callable[[], object]:
    def look() -> None:
        listed = list(every(lambda after: store.views.unsettled(after=after, limit=10), None, lambda row: row.key))
        assert len(listed) == 2 * sessions

    return look


def _steps(store: SqliteStore, look: Callable[[], object]) -> int:
    """How many instructions of SQLite's machine a look takes, in tens."""
    counted = itertools.count()
    with store.events.snapshot() as view:
        connection = view.connection  # type: ignore[attr-defined]
    connection.set_progress_handler(lambda: next(counted) < 0, 10)
    look()
    connection.set_progress_handler(None, 0)
    return next(counted)
