"""Control rows that are not what was written are named, and nobody is taken for dead by them. SPEC section 6."""

from __future__ import annotations

import sqlite3

import pytest

from safepoint.adapters.sqlite.control_rows import COLUMNS, checksum
from safepoint.adapters.sqlite.store import SqliteStore
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession


@pytest.fixture
def kept(store: SqliteStore, recorded: RecordedSession) -> SqliteStore:
    """A store with a row in every table of control rows."""
    store.adopt(by="somebody", note="because", at=NOON)
    return store


CHANGES = [
    *((table, one, "'another'") for table, columns in COLUMNS.items() for one in columns if one != "generation"),
    *((table, "generation", "generation + 5") for table in ("store_control", "adoptions")),
    *((table, "checksum", value) for table in COLUMNS for value in ("'another'", "NULL", "7")),
    ("session_owners", "epoch", "epoch + 1"),
    ("incarnations", "pid", "pid + 1"),
    ("incarnations", "incarnation_id", "x'ff'"),
]


@pytest.mark.parametrize(("table", "column", "value"), CHANGES)
def test_a_changed_control_row_is_named(
    kept: SqliteStore, raw: sqlite3.Connection, table: str, column: str, value: str
) -> None:
    assert list(kept.faults()) == []
    raw.execute("PRAGMA ignore_check_constraints = ON")
    raw.execute(f"UPDATE {table} SET {column} = {value}")
    assert any(table in fault for fault in kept.faults())


def test_damaged_facts_of_a_process_are_none(
    store: SqliteStore, recorded: RecordedSession, raw: sqlite3.Connection
) -> None:
    life = recorded.guard.incarnation_id
    assert store.owners.incarnation(life) is not None
    raw.execute("UPDATE incarnations SET boot_id = 'another'")
    assert store.owners.incarnation(life) is None


def test_whoever_takes_and_releases_a_session_keeps_its_row_whole(
    store: SqliteStore, recorded: RecordedSession
) -> None:
    store.owners.release(*recorded.guard)
    recorded.own(store.owners)
    assert list(store.faults()) == []


def test_a_checksum_covers_order_table_and_types() -> None:
    assert checksum("t", "1", None) == checksum("t", "1", None)
    assert len({checksum("t", "1", 2), checksum("t", 2, "1"), checksum("u", "1", 2), checksum("t", "1", "2")}) == 4
    assert checksum("t", b"bytes") == ""
