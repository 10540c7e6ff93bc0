"""Views whose rows or pages are damaged hide nothing silently, and are made again from the events. F12 and issue 3."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.sqlite import operation_view, projection_tables
from safepoint.adapters.sqlite.store import open_reader
from safepoint.application.verify_store import VerifyStore

from .program import Program

PAGE_BYTES = 4096
VIEWS = sorted(projection_tables.names() - {projection_tables.JOURNAL, operation_view.OPERATIONS})
CONTROL = ("unique_ids", "admissions", "sealed_streams", "commits", "incarnations", "session_owners")
Sessions = list[dict[str, Any]]


@pytest.fixture
def worked(program: Program) -> Program:
    """A program whose store holds three finished sessions."""
    program.script()
    for _ in range(3):
        assert program(*program.run()).code == 0
    return program


@pytest.fixture
def listed(worked: Program) -> Sessions:
    """The sessions as they are listed before any damage."""
    sessions: Sessions = worked("list", "--json").document["sessions"]
    assert len(sessions) == 3
    return sessions


def raw(program: Program, sql: str, *arguments: object) -> None:
    with closing(sqlite3.connect(program.store, isolation_level=None)) as connection:
        connection.execute(sql, arguments)


def spoil(program: Program, name: str) -> None:
    """Fill the first page of a table or index with zeros."""
    with closing(sqlite3.connect(program.store)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    with program.store.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))


@pytest.mark.parametrize("name", VIEWS)
def test_views_with_damaged_pages_are_named_and_made_again(worked: Program, listed: Sessions, name: str) -> None:
    spoil(worked, name)
    for command in (("list",), ("show", listed[0]["session_id"])):
        ran = worked(*command, "--json")
        if ran.code:
            assert (ran.code, ran.document["code"]) == (4, "store_damaged")
            assert "safepoint rebuild" in ran.document["next_step"]
            assert "views" in ran.document["message"]
    found = worked("verify", "--json")
    assert found.code == 4
    said = (*found.document["faults"], *(one["table"] for one in found.document["projections"]))
    table = name if name in projection_tables.WRITTEN else worked_table(worked, name)
    assert any(table in one for one in said), found.document
    assert found.document["damages"] == []
    assert worked("rebuild").code == 0
    assert worked("verify").code == 0
    assert worked("list", "--json").document["sessions"] == listed


def worked_table(program: Program, index: str) -> str:
    with closing(sqlite3.connect(program.store)) as connection:
        (table,) = connection.execute("SELECT tbl_name FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    return str(table)


@pytest.mark.parametrize("name", CONTROL)
def test_verify_names_the_table_whose_pages_are_damaged(worked: Program, name: str) -> None:
    spoil(worked, name)
    found = worked("verify", "--json")
    if found.document.get("code") == "store_damaged":  # nothing of the store can be judged without it
        assert name == "commits"
        return
    assert found.code == 4
    assert any(f"table {name}" in fault for fault in found.document["faults"]), found.document["faults"]


@pytest.mark.parametrize("spoilt", ["CAST(x'ff41' AS TEXT)", "x'00ff'", "'another'"])
def test_a_row_that_cannot_be_read_is_listed_as_unreadable_beside_the_others(
    worked: Program, listed: Sessions, spoilt: str
) -> None:
    lost = listed[1]["session_id"]
    raw(worked, f"UPDATE sessions SET session_id = {spoilt} WHERE session_id = ?", lost)
    found = worked("list", "--json").document["sessions"]
    assert [one["state"] for one in found] == ["completed", "unreadable", "completed"]
    assert found[1]["code"] == "store_damaged"
    assert [found[0], found[2]] == [listed[0], listed[2]]
    assert worked("rebuild").code == 0
    assert worked("list", "--json").document["sessions"] == listed


@pytest.mark.parametrize("how", ["DELETE FROM sessions", "UPDATE sessions SET session_id = 'another'"])
def test_a_session_that_its_view_has_lost_is_unreadable_and_not_unknown(
    worked: Program, listed: Sessions, how: str
) -> None:
    """What a view does not name is not proven to be absent (F1)."""
    lost = listed[1]["session_id"]
    raw(worked, f"{how} WHERE session_id = ?", lost)
    ran = worked("show", lost, "--json")
    assert (ran.code, ran.document["session"]["state"]) == (4, "unreadable")
    assert ran.document["session"]["code"] == "store_damaged"
    assert "safepoint rebuild" in worked("show", lost).out
    assert worked("show", "nobody", "--json").document["code"] == "unknown_session"
    assert worked("rebuild").code == 0
    assert worked("show", lost).code == 0


@pytest.mark.parametrize("size", [0, 100, PAGE_BYTES, 5 * PAGE_BYTES])
@pytest.mark.parametrize("command", ["verify", "list"])
def test_nobody_is_sent_to_verify_for_a_store_that_cannot_be_opened(
    worked: Program, listed: Sessions, command: str, size: int
) -> None:
    """Verify itself said: find the place with verify."""
    os.truncate(worked.store, size)
    ran = worked(command, "--json")
    assert (ran.code, ran.document["code"]) == (4, "store_damaged")
    assert str(worked.store) in ran.document["message"]
    assert "safepoint verify" not in ran.document["next_step"]
    assert "safepoint restore" in ran.document["next_step"]
    assert "Copy its files" in ran.document["next_step"]


def candidates(content: bytes, page: int, sizes: set[int]) -> list[int]:
    """Where a page says that a text of such a size follows; one bit more, and it is no text any more."""
    start = (page - 1) * PAGE_BYTES
    return [at for at in range(start, start + PAGE_BYTES) if (content[at] - 13) // 2 in sizes and content[at] % 2]


@pytest.mark.parametrize("name", ["sqlite_autoindex_stored_events_1", "sessions_newest", "session_owners"])
def test_names_that_damage_put_out_of_order_come_to_an_end(worked: Program, listed: Sessions, name: str) -> None:
    """An index in which a name is none any more once let `verify` page through the same streams for ever."""
    whole = worked.store.read_bytes()
    with closing(sqlite3.connect(worked.store)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        ids = connection.execute("SELECT DISTINCT originator_id FROM stored_events").fetchall()
    sizes = {len(text) for (text,) in ids} | {len(one["session_id"]) for one in listed}
    places = candidates(whole, page, sizes)
    assert places
    for at in places:
        worked.store.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        verify_in_bounded_time(worked.store)


def verify_in_bounded_time(path: Path) -> None:
    turns = 0

    def count(streams: int, events: int) -> None:
        nonlocal turns
        turns += 1
        assert turns < 1_000, "it does not come to an end"

    reader = open_reader(path)
    try:
        VerifyStore(reader.events, reader, reader.owners, reader.projections)(count)
    finally:
        reader.close()
