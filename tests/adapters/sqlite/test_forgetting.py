"""Forgetting in one SQLite file: the bytes are gone from every file, and the rules hold before, after and meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.sqlite import schema
from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.forgetting import FORGOTTEN_TOPIC
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

BY, AT = "Ada", "2026-03-02T00:00:00.000000Z"
SECRET = "the-secret-that-must-go"


class Killed(BaseException):
    """The process ends here."""


def filled(path: Path, on_point: Callable[[str], None] | None = None) -> SqliteStore:
    """Two sessions with a secret each, in small pieces and in one that fills many pages."""
    store = open_store(path, on_point=on_point)
    for name in ("one", "two"):
        recorded = RecordedSession(name)
        recorded.own(store.owners)
        recorded.keep(store.events, *recorded.opened())
        recorded.keep(store.events, recorded.text(f"{SECRET}-{name} in a line"))
        recorded.keep(store.events, recorded.text(f"{SECRET}-{name} " * 5_000))
        recorded.keep(store.events, recorded.ended())
    return store


def session(name: str) -> RecordedSession:
    return RecordedSession(name)


def found_in(path: Path, secret: str) -> list[str]:
    """The files of a store that hold a text."""
    return [one.name for one in sorted(path.parent.iterdir()) if secret.encode() in one.read_bytes()]


def sound(store: SqliteStore) -> bool:
    return VerifyStore(store.events, store, store.owners, store.projections)().sound


def test_the_bytes_are_gone_from_every_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = filled(path)
    assert found_in(path, f"{SECRET}-one") != []
    done = store.forgetting.forget([session("one").session_id], by=BY, at=AT)
    assert done.log_emptied
    assert found_in(path, f"{SECRET}-one") == []
    assert found_in(path, f"{SECRET}-two") != []
    assert sound(store)
    store.close()
    assert found_in(path, f"{SECRET}-one") == []


def test_a_reader_meanwhile_keeps_its_view_and_the_log_is_said_to_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = filled(path)
    other = open_reader(path)
    with other.events.snapshot() as reader:
        before = reader.read("run:run-one-a")
        done = store.forgetting.forget([session("one").session_id], by=BY, at=AT)
        assert not done.log_emptied
        assert reader.read("run:run-one-a") == before
    other.close()
    store.close()
    assert found_in(path, f"{SECRET}-one") == []


def test_the_rules_against_changing_events_hold_after_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = filled(path)
    store.forgetting.forget([session("one").session_id], by=BY, at=AT)
    store.close()
    raw = sqlite3.connect(path)
    for statement in ("UPDATE stored_events SET state = x'00'", "DELETE FROM stored_events"):
        with pytest.raises(sqlite3.DatabaseError):
            raw.execute(statement)
    schema.require_store(raw, path)
    raw.close()


def test_a_store_goes_on_after_it_and_agrees_with_its_anchor(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = filled(path)
    store.forgetting.forget([session("two").session_id], by=BY, at=AT)  # the newest events of the store
    third = RecordedSession("three")
    third.own(store.owners)
    third.keep(store.events, *third.opened())
    store.close()
    again = open_store(path)
    assert sound(again)
    assert again.condition().trust == "ok"
    again.close()


def test_a_tombstone_that_is_changed_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = filled(path)
    store.forgetting.forget([session("one").session_id], by=BY, at=AT)
    store.close()
    raw = sqlite3.connect(path)
    for (rule,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {rule}")
    flipped = 'UPDATE stored_events SET state = replace(CAST(state AS TEXT), \'"digest":"\', \'"digest":"0\')'
    raw.execute(f"{flipped} WHERE topic = ? AND originator_version = 2", (FORGOTTEN_TOPIC,))
    for statement in schema.statements():
        if statement.startswith("CREATE TRIGGER"):
            raw.execute(statement)
    raw.commit()
    raw.close()
    again = open_reader(path)
    assert not sound(again)
    again.close()


def test_what_is_damaged_can_be_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    filled(path).close()
    raw = sqlite3.connect(path)
    for (rule,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {rule}")
    raw.execute("UPDATE stored_events SET state = ? WHERE originator_id = 'run:run-one-a'", (SECRET.encode(),))
    for statement in schema.statements():
        if statement.startswith("CREATE TRIGGER"):
            raw.execute(statement)
    raw.commit()
    raw.close()
    store = open_store(path)
    store.forgetting.forget([session("one").session_id], by=BY, at=AT)
    assert found_in(path, f"{SECRET}-one") == []
    store.close()


def test_killed_at_any_instant_all_of_it_is_there_or_none_and_a_second_try_finishes(tmp_path: Path) -> None:
    points: list[str] = []
    store = filled(tmp_path / "store.sqlite", points.append)
    points.clear()
    store.forgetting.forget([session("one").session_id], by=BY, at=AT)
    store.close()
    instants = len(points)
    assert instants > 10
    chosen = range(0, instants, max(1, instants // 20))
    for instant in chosen:
        path = tmp_path / f"{instant}" / "store.sqlite"
        path.parent.mkdir()
        armed = [10**9]

        def die(point: str, armed: list[int] = armed) -> None:
            armed[0] -= 1
            if armed[0] < 0:
                raise Killed(point)

        dying = filled(path, die)
        armed[0] = instant
        with pytest.raises(Killed):
            dying.forgetting.forget([session("one").session_id], by=BY, at=AT)
        again = open_store(path)
        with again.events.snapshot() as reader:
            topics = {row.topic == FORGOTTEN_TOPIC for row in reader.read("run:run-one-a")}
        assert len(topics) == 1
        assert sound(again)
        again.forgetting.forget([session("one").session_id], by=BY, at=AT)
        dying.close()
        assert sound(again)
        again.close()
        assert found_in(path, f"{SECRET}-one") == []


def test_a_store_that_is_read_only_forgets_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    filled(path).close()
    reader = open_reader(path)
    with pytest.raises(Exception, match="for reading"):
        reader.forgetting.forget([session("one").session_id], by=BY, at=AT)
    reader.close()
