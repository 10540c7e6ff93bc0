"""What is offered where a store, or a run in it, cannot vouch for what it does not hold: commands that are heeded."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .program import PAY, Program


@pytest.fixture
def interrupted(program: Program) -> Program:
    """A store whose session was killed when it had paid."""
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
    program.killed_at("P4", *program.run("--session", "doubt", "--allow-all"))
    return program


@pytest.fixture
def copied(interrupted: Program) -> Program:
    """A copy of it, in a folder of its own."""
    folder = interrupted.folder / "elsewhere"
    shutil.copytree(interrupted.store.parent, folder / "state", ignore=shutil.ignore_patterns("*.locks"))
    for name in ("script.json", "workspace"):
        (folder / name).symlink_to(interrupted.folder / name)
    return replace(interrupted, folder=folder)


def offered(document: dict[str, Any]) -> list[str]:
    return [shlex.split(way["command"])[1] for way in document["commands"]]


def pasted(program: Program, document: dict[str, Any], verb: str) -> tuple[str, ...]:
    command = next(way["command"] for way in document["commands"] if shlex.split(way["command"])[1] == verb)
    return tuple(shlex.split(command)[1:])


@pytest.mark.parametrize("command", ["plan", "resume", "status"])
def test_a_copy_is_adopted_before_anything_that_would_be_refused_there(copied: Program, command: str) -> None:
    script = () if command == "status" else ("--script", copied.folder / "script.json")
    named = ("--session", "doubt") if command == "status" else ("doubt",)
    document = copied(command, *named, *script, "--json").document
    assert offered(document)[0] == "adopt"
    assert not {"resume", "run", "settle", "takeover"} & {*offered(document)}
    assert copied.bare(*pasted(copied, document, "adopt")).code == 0


def test_a_foreign_run_is_continued_with_a_persons_consent_which_its_claim_records(copied: Program) -> None:
    script = ("--script", copied.folder / "script.json")
    assert copied("plan", "doubt", *script, "--adopt").code == 3
    assert copied("adopt", "--note", "the one to go on with").code == 0
    assert copied("takeover", "doubt", "--fence-only").code == 0
    for operation in copied("plan", "doubt", *script, "--json").document["operations"]:
        operation_id = operation["operation_id"]
        assert copied("settle", operation_id, "--declare-over", "--note", "that machine is off").code == 0
        assert copied("settle", operation_id, "--not-executed", "--note", "the log is empty").code == 0
    operations = copied("plan", "doubt", *script, "--json").document
    assert "foreign_run_not_adopted" in str(operations["reasons"])
    resume = [way["command"] for way in operations["commands"] if "--adopt" in shlex.split(way["command"])]
    assert len(resume) == 1
    resumed = copied.bare(*shlex.split(resume[0])[1:], "--json")
    assert (resumed.code, resumed.document["decision"]) == (0, "continued"), resumed
    assert [note["code"] for note in resumed.document["notes"]].count("foreign_adopted") == 1
    with closing(sqlite3.connect(copied.store)) as raw:
        accepted = "json_extract(CAST(state AS TEXT), '$.accepted_drift')"
        claims = raw.execute(f"SELECT {accepted} FROM stored_events WHERE topic = 'run.claimed.v1'")
        assert claims.fetchall() == [('["foreign_run"]',)]


def test_a_store_without_its_database_is_put_back_not_adopted(interrupted: Program) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{interrupted.store}{suffix}").unlink(missing_ok=True)
    for command in (("plan", "doubt"), ("verify",), ("adopt", "--note", "x"), ("list",)):
        ran = interrupted(*command)
        assert ran.code == 4, (command, ran)
        assert "safepoint restore FILE" in ran.err
        assert "adopt" not in ran.err


@pytest.mark.parametrize("table", ["store_control", "commits"])
def test_a_store_without_its_control_rows_is_put_back(interrupted: Program, table: str) -> None:
    with closing(sqlite3.connect(interrupted.store, isolation_level=None)) as raw:
        raw.execute(f"DELETE FROM {table}")
    ran = interrupted("verify")
    assert ran.code == 4
    assert "safepoint restore FILE" in ran.err
    assert "abandon" not in ran.err + ran.out


def test_a_store_without_its_anchor_is_not_called_shorter(interrupted: Program) -> None:
    Path(f"{interrupted.store}.anchor").unlink()
    ran = interrupted("plan", "doubt", "--script", interrupted.folder / "script.json")
    assert ran.code == 4
    assert "no anchor that tells" in ran.out + ran.err
    assert "safepoint adopt" in ran.out
