"""A run whose newest event was deleted by raw SQL proves nothing by what it does not hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.application.repair_session import RepairKind
from safepoint.domain.identifiers import SessionId

from .program import PAY, Program, ended

DISPATCHED, ENDED = "tool.dispatched.v1", "run.ended.v1"


def delete_newest(store: Path, topic: str, session: str) -> None:
    """With the rules taken off and made again."""
    with closing(sqlite3.connect(store, isolation_level=None)) as raw:
        rules = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in rules:
            raw.execute(f'DROP TRIGGER "{name}"')
        gone = raw.execute(
            "DELETE FROM stored_events WHERE rowid = (SELECT MAX(rowid) FROM stored_events WHERE topic = ?"
            " AND json_extract(CAST(state AS TEXT), '$.session_id') = ?)",
            (topic, session),
        )
        assert gone.rowcount == 1
        for _, sql in rules:
            raw.execute(sql)


@pytest.fixture
def deleted(program: Program) -> Callable[[str, str], Program]:
    """A store of a session that was killed while it paid, or that ended, followed by another one; then a deletion."""

    def make(topic: str, failpoint: str) -> Program:
        script = program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
        killed = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": failpoint} if failpoint else {}
        arguments = ("run", "Pay.", "--session", "doubt", "--script", script, "--workspace", program.workspace)
        ended(program.start(*arguments, **killed))
        assert program.effects
        hello = program.folder / "hello.json"
        hello.write_text('{"steps": [{"text": "Hello."}]}')
        said = ("run", "Hi.", "--session", "other", "--script", hello, "--workspace", program.workspace)
        assert program(*said).code == 0
        delete_newest(program.store, topic, "doubt")
        return program

    return make


def test_a_call_whose_dispatch_was_deleted_is_not_said_to_be_undispatched(
    deleted: Callable[[str, str], Program],
) -> None:
    program = deleted(DISPATCHED, "P4")
    script = program.folder / "script.json"
    planned = program("plan", "doubt", "--script", script, "--json")
    assert planned.code == 4
    assert [one["code"] for one in planned.document["reasons"]] == ["runtime_ledger_unreadable"]
    assert "abandon" in str(planned.document["commands"])
    resumed = program("resume", "doubt", "--script", script, "--json")
    assert (resumed.code, len(program.effects)) == (4, 1)
    assert program("verify").code == 4
    assert program("export", "doubt").code == 4
    shown = program("show", "doubt", "--json").document
    assert "definitely_not_dispatched" not in str(shown)
    assert program("run", "More.", "--session", "doubt", "--script", script).code == 4
    assert len(program.effects) == 1
    assert program("plan", "other", "--json").code != 4
    assert program("abandon", "doubt", "--note", "looked").code == 0


def test_a_run_whose_end_was_deleted_is_not_taken_for_an_open_one(deleted: Callable[[str, str], Program]) -> None:
    program = deleted(ENDED, "")
    planned = program("plan", "doubt", "--script", program.folder / "script.json", "--json")
    assert planned.code == 4
    assert [one["code"] for one in planned.document["reasons"]] == ["runtime_ledger_unreadable"]
    assert program("export", "doubt").code == 4


def test_a_program_that_lives_on_and_was_only_refused_does_not_keep_the_session_from_a_person(
    deleted: Callable[[str, str], Program],
) -> None:
    program = deleted(DISPATCHED, "P4")
    with OpenedStore(Settings(program.store)) as living:
        ownership, repair = living.parts.ownership(), living.parts.repair_family()
        owned = ownership.own(SessionId("doubt"))
        assert repair(owned).kind is RepairKind.QUARANTINED
        ownership.give_up_failed(owned, RuntimeError("refused, as every use of it is"))
        assert program("abandon", "doubt", "--note", "looked").code == 0
