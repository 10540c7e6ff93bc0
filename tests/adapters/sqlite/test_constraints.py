"""The rules that hold against somebody who bypasses the application with raw SQL. SPEC section 7."""

from __future__ import annotations

import sqlite3

import pytest

from safepoint.adapters.sqlite import schema
from safepoint.domain.events.catalogue import AFTER_TERMINAL, EVENTS
from safepoint.domain.events.run import RunClaimed, RunEnded
from safepoint.domain.events.session import RunAdmitted
from safepoint.domain.events.tool import ToolDispatched
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

INSERTS = ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL", "INSERT OR ROLLBACK"]


def state(event_id: str, **fields: str) -> bytes:
    """Bytes that name an event, and little more."""
    members = {"event_id": event_id, **fields}
    return ("{" + ",".join(f'"{name}":"{value}"' for name, value in members.items()) + "}").encode()


def insert(
    raw: sqlite3.Connection, stream: str, version: object, topic: object, content: object, how: str = "INSERT"
) -> None:
    raw.execute(f"{how} INTO stored_events VALUES (?, ?, ?, ?)", (stream, version, topic, content))


def everything(raw: sqlite3.Connection) -> list[tuple[object, ...]]:
    tables = ("stored_events", "unique_ids", "admissions", "sealed_streams", "commits", "store_control")
    return [row for table in tables for row in raw.execute(f"SELECT * FROM {table}")]


@pytest.mark.parametrize("change", ["state = x'00'", "topic = 'x'", "originator_version = 9", "originator_id = 'x'"])
@pytest.mark.parametrize("how", ["UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"])
def test_an_event_is_never_changed(raw: sqlite3.Connection, how: str, change: str) -> None:
    before = everything(raw)
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        raw.execute(f"{how} stored_events SET {change}")
    assert everything(raw) == before


@pytest.mark.parametrize("where", ["", "WHERE rowid = 1"])
def test_an_event_is_never_deleted(raw: sqlite3.Connection, where: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        raw.execute(f"DELETE FROM stored_events {where}")


@pytest.mark.parametrize("table", ["unique_ids", "sealed_streams", "admissions"])
def test_what_is_known_of_events_is_never_deleted(
    raw: sqlite3.Connection, recorded: RecordedSession, table: str
) -> None:
    insert(raw, f"run:{recorded.run_id()}", 3, RunEnded.topic, state("end"))
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        raw.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize(
    "change", ["unique_ids SET id = 'x'", "sealed_streams SET stream = 'x'", "admissions SET session_id = 'x'"]
)
def test_what_is_known_of_events_is_never_changed(
    raw: sqlite3.Connection, recorded: RecordedSession, change: str
) -> None:
    insert(raw, f"run:{recorded.run_id()}", 3, RunEnded.topic, state("end"))
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(f"UPDATE {change}")


def test_an_admission_can_become_foreign_and_nothing_else(raw: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="only become foreign"):
        raw.execute("UPDATE admissions SET generation = 2")
    raw.execute("UPDATE admissions SET generation = 0")


@pytest.mark.parametrize("how", INSERTS)
@pytest.mark.parametrize("version", [0, 1, 2, 4, -1, "3x", None, 3.5])
def test_versions_of_a_stream_have_no_gaps_and_no_seconds(
    raw: sqlite3.Connection, recorded: RecordedSession, version: object, how: str
) -> None:
    before = everything(raw)
    with pytest.raises(sqlite3.IntegrityError):
        insert(raw, f"run:{recorded.run_id()}", version, "model.text.v1", state("new"), how)
    assert everything(raw) == before


@pytest.mark.parametrize("how", INSERTS)
def test_the_row_of_an_event_cannot_be_chosen(raw: sqlite3.Connection, recorded: RecordedSession, how: str) -> None:
    before = everything(raw)
    for row in (1, 4, 5, 99, 0, -2):
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute(
                f"{how} INTO stored_events (rowid, originator_id, originator_version, topic, state)"
                " VALUES (?, ?, 3, 'model.text.v1', ?)",
                (row, f"run:{recorded.run_id()}", state("new")),
            )
    assert everything(raw) == before


@pytest.mark.parametrize("content", ["{}", b"{}", b"", b"not json", None, b'{"event_id":null}'])
def test_what_names_no_event_is_not_kept(raw: sqlite3.Connection, recorded: RecordedSession, content: object) -> None:
    before = everything(raw)
    with pytest.raises((sqlite3.IntegrityError, sqlite3.OperationalError)):
        insert(raw, f"run:{recorded.run_id()}", 3, "model.text.v1", content, "INSERT OR IGNORE")
    assert everything(raw) == before


@pytest.mark.parametrize("how", INSERTS)
@pytest.mark.parametrize(
    ("topic", "fields"),
    [
        ("model.text.v1", {}),
        (ToolDispatched.topic, {"operation_id": "operation-one-a-x"}),
        (RunClaimed.topic, {"claim_id": "claim-one"}),
        (RunAdmitted.topic, {"run_id": "run-one-a", "session_id": "session-one"}),
    ],
    ids=["event", "operation", "claim", "run"],
)
def test_an_id_is_used_once_whatever_the_statement_says(
    raw: sqlite3.Connection, recorded: RecordedSession, topic: str, fields: dict[str, str], how: str
) -> None:
    insert(raw, "run:other", 1, ToolDispatched.topic, state("first", operation_id="operation-one-a-x"))
    insert(raw, "run:claimed", 1, RunClaimed.topic, state("second", claim_id="claim-one"))
    before = everything(raw)
    event_id = "third" if fields else "first"
    with pytest.raises(sqlite3.IntegrityError, match=schema.USED_ID):
        insert(raw, "run:another", 1, topic, state(event_id, **fields), how)
    assert everything(raw) == before


def test_an_id_of_one_kind_may_be_an_id_of_another(raw: sqlite3.Connection) -> None:
    insert(raw, "run:other", 1, ToolDispatched.topic, state("same", operation_id="same"))
    insert(raw, "run:another", 1, RunClaimed.topic, state("another", claim_id="same"))


@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_after_the_terminal_event_only_listed_topics_follow(raw: sqlite3.Connection, topic: str) -> None:
    insert(raw, "run:x", 1, RunEnded.topic, state("end"))
    follower = state("late", operation_id="o", claim_id="c", run_id="r", session_id="s")
    if topic in AFTER_TERMINAL:
        insert(raw, "run:x", 2, topic, follower)
        return
    with pytest.raises(sqlite3.IntegrityError, match="sealed"):
        insert(raw, "run:x", 2, topic, follower)


@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_nothing_follows_a_claim(raw: sqlite3.Connection, topic: str) -> None:
    insert(raw, "run:x", 1, RunEnded.topic, state("end"))
    insert(raw, "run:x", 2, RunClaimed.topic, state("claim", claim_id="c"))
    with pytest.raises(sqlite3.IntegrityError, match="sealed"):
        insert(raw, "run:x", 3, topic, state("late", operation_id="o", claim_id="d", run_id="r", session_id="s"))


def test_a_seal_of_one_stream_seals_no_other(raw: sqlite3.Connection, recorded: RecordedSession) -> None:
    insert(raw, "run:x", 1, RunEnded.topic, state("end"))
    insert(raw, f"run:{recorded.run_id()}", 3, "model.text.v1", state("text"))


def test_an_owner_is_a_recorded_life_with_an_epoch(raw: sqlite3.Connection) -> None:
    raw.execute("PRAGMA foreign_keys = ON")
    for incarnation, epoch in (("unknown", 1), ("life", 0)):
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute("INSERT INTO session_owners VALUES ('s', ?, ?, '')", (incarnation, epoch))


def test_there_is_one_control_row(raw: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("INSERT INTO store_control VALUES (2, 'x', 1, '', '', NULL, '')")
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("UPDATE store_control SET generation = 0")
