"""Bad input: a clear message on standard error, the documented exit status, no traceback, nothing changed."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from safepoint.adapters.cli.failures import failure_of
from safepoint.adapters.sqlite.schema import SCHEMA_VERSION
from safepoint.domain.errors import StoreForbidden

from .program import Program


@pytest.fixture
def used(program: Program) -> Program:
    """A store with one completed session."""
    program.script({"text": "Hello."})
    assert program.process(*program.run("--session", "s1")).code == 0
    return program


@pytest.mark.parametrize("command", ["show", "plan", "resume", "status", "cancel"])
def test_an_unknown_session(used: Program, command: str) -> None:
    before = used.bytes_of_store()
    ran = used(command, "no-such-session", "--json")
    assert (ran.code, ran.document["code"]) == (2, "unknown_session")
    assert "There is no session no-such-session in this store." in ran.err
    assert used.bytes_of_store() == before


@pytest.mark.parametrize("command", ["show", "plan", "resume", "cancel"])
@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201])
def test_a_name_that_is_no_session_id(used: Program, command: str, name: str) -> None:
    ran = used(command, "--session", name)
    assert ran.code == 2
    assert "This is no session id" in ran.err


def test_two_different_sessions(used: Program) -> None:
    assert used("show", "s1", "--session", "s2").code == 2


COMMANDS = (("list",), ("status",), ("show", "s1"), ("plan", "s1"), ("resume", "s1"), ("cancel", "s1"), ("verify",))


@pytest.mark.parametrize("command", [*COMMANDS, ("run",)], ids=lambda command: command[0])
def test_a_folder_as_store(program: Program, command: tuple[str, ...]) -> None:
    program.script()
    program.store.mkdir()
    ran = program(*(program.run() if command == ("run",) else command), "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_unusable")
    assert "is a folder" in ran.err
    assert list(program.store.iterdir()) == []


@pytest.mark.parametrize("command", [*COMMANDS, ("run",)], ids=lambda command: command[0])
def test_the_database_of_another_program(program: Program, command: tuple[str, ...]) -> None:
    program.script()
    other = sqlite3.connect(program.store)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = program.store.read_bytes()
    ran = program(*(program.run() if command == ("run",) else command), "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_unusable")
    assert "another program" in ran.err
    assert program.store.read_bytes() == before
    assert not Path(f"{program.store}.anchor").exists()


@pytest.mark.parametrize("command", [*COMMANDS, ("run",)], ids=lambda command: command[0])
def test_a_newer_database(used: Program, command: tuple[str, ...]) -> None:
    """r3-093."""
    newer = sqlite3.connect(used.store)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = used.bytes_of_store()
    ran = used(*(used.run() if command == ("run",) else command), "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_version_newer")
    assert f"schema version 99; this program knows {SCHEMA_VERSION}" in ran.err
    assert used.bytes_of_store() == before


@pytest.mark.parametrize("command", [*COMMANDS, ("run",)], ids=lambda command: command[0])
def test_a_database_file_whose_head_is_damaged(used: Program, command: tuple[str, ...]) -> None:
    content = used.store.read_bytes()
    used.store.write_bytes(b"\0" * 100 + content[100:])
    before = used.bytes_of_store()
    ran = used(*(used.run() if command == ("run",) else command), "--json")
    assert (ran.code, ran.document["code"]) == (4, "store_damaged")
    assert used.bytes_of_store() == before


def test_a_wal_that_was_removed(program: Program) -> None:
    program.script({"text": "Hello."})
    program.killed_at("P9", *program.run("--session", "s1"))
    Path(f"{program.store}-wal").unlink()
    Path(f"{program.store}-shm").unlink()
    ran = program(*program.run("--session", "s2"), "--json")
    assert (ran.code, ran.document["code"]) == (4, "ledger_behind_anchor")
    assert program("verify", "--json").document["condition"]["trust"] == "behind_anchor"
    assert program("verify").code == 4


def test_a_database_that_is_gone_beside_its_anchor(used: Program) -> None:
    used.store.unlink()
    for command in (("list",), used.run()):
        ran = used(*command, "--json")
        assert (ran.code, ran.document["code"]) == (4, "ledger_behind_anchor")
    assert not used.store.exists()


def test_a_copy_that_is_made_as_the_hint_says_holds_the_newest_commits(program: Program) -> None:
    """A killed writer leaves them in the log alone."""
    program.script({"text": "Hello."})
    program.killed_at("P9", *program.run("--session", "s1"))
    hint = failure_of(StoreForbidden("the folder may not be written")).next_step
    copy = program.folder / "copy.sqlite"
    for beside in ("", *re.findall(r"`([-.]\w+)`", hint)):
        shutil.copy(f"{program.store}{beside}", f"{copy}{beside}")
    ran = program.bare("list", "--store", copy, "--json")
    assert (ran.code, [one["session_id"] for one in ran.document["sessions"]]) == (0, ["s1"])


def test_a_copied_store_may_be_read_and_not_written(used: Program) -> None:
    copy = used.folder / "copy.sqlite"
    shutil.copy(used.store, copy)
    shutil.copy(f"{used.store}.anchor", f"{copy}.anchor")
    assert used.bare("list", "--store", copy).code == 0
    before = copy.read_bytes()
    ran = used.bare(*used.run("--session", "s2"), "--store", copy, "--json")
    assert (ran.code, ran.document["code"]) == (3, "foreign_run_not_adopted")
    assert copy.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not strict JSON"),
        ('{"steps": [{"calls": [{}]}]}', "is not a script"),
        ('{"steps": [], "steps": []}', "is not strict JSON"),
        ('{"steps": [{"text": "a", "colour": "red"}]}', "is not a script"),
    ],
)
def test_a_script_with_errors(program: Program, content: str, said: str) -> None:
    (program.folder / "script.json").write_text(content)
    ran = program(*program.run(), "--json")
    assert (ran.code, ran.document["code"]) == (2, "provider_unusable")
    assert said in ran.err
    assert not program.store.exists()
    assert list(program.workspace.iterdir()) == []


def test_a_script_that_is_not_there(program: Program) -> None:
    ran = program(*program.run())
    assert ran.code == 2
    assert "cannot be read" in ran.err
    assert not program.store.exists()


def test_a_workspace_that_is_not_there(program: Program) -> None:
    program.script()
    program.workspace.rmdir()
    ran = program(*program.run(), "--json")
    assert (ran.code, ran.document["code"]) == (2, "workspace_missing")
    assert not program.store.exists()
    assert not program.workspace.exists()


def test_a_workspace_whose_marker_is_no_marker(program: Program) -> None:
    program.script()
    (program.workspace / ".safepoint-workspace.json").write_text("{}")
    ran = program(*program.run(), "--json")
    assert (ran.code, ran.document["code"]) == (2, "workspace_refused")
    assert not program.store.exists()


def test_an_unknown_tool_is_not_permitted(program: Program) -> None:
    program.script()
    ran = program(*program.run("--allow", "write_fil"))
    assert ran.code == 2
    assert "There is no tool named write_fil." in ran.err
    assert "write_file" in ran.err
    assert not program.store.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "Do it.", "--provider", "oracle"),
        ("run", "Do it.", "--provider", "scripted"),
        ("run", "Do it.", "--ask", "--deny", "--script", "script.json"),
        ("run", "Do it.", "--model", "m", "--script", "script.json"),
        ("run", "Do it.", "--provider", "openai", "--script", "script.json"),
        ("run", "Do it.", "--provider", "openai", "--model", "m"),
        ("run", "Do it."),
        ("run", "  ", "--script", "script.json"),
        ("run", "Do it.", "--session", "a\tb", "--script", "script.json"),
        ("list", "--limit", "0"),
        ("list", "--limit", "many"),
        ("list", "--colour"),
        ("show",),
        ("cancel",),
        ("no-such-command",),
        ("plan", "s1", "--expect-high-water", "0"),
    ],
    ids=" ".join,
)
def test_options_that_cannot_be_used(
    program: Program, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    program.script()
    monkeypatch.chdir(program.folder)
    for form in ((), ("--json",)):
        ran = program.bare(*arguments, *form)
        assert ran.code == 2, ran
        assert ran.err
        if form:
            assert ran.document["exit_code"] == 2
    assert not (program.folder / "xdg").exists()


def test_a_store_whose_folder_is_not_there(program: Program) -> None:
    program.script()
    ran = program.bare(*program.run(), "--store", program.folder / "nowhere" / "store.sqlite", "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_unusable")
    assert not (program.folder / "nowhere").exists()


def test_an_error_for_programs_has_the_documented_members(used: Program) -> None:
    document = json.loads(used("show", "unknown", "--json").out)
    assert list(document) == ["schema", "code", "message", "next_step", "exit_code"]
    assert document["schema"] == "safepoint.cli.error.v1"


def test_damage_in_one_session_leaves_the_others_readable_and_writable(used: Program) -> None:
    """r3-069: every session is listed, the damaged one as unreadable with its code."""
    used.script({"text": "Hello again."})
    assert used.process(*used.run("--session", "s2")).code == 0
    calls = [{"tool": "list_files"}] * 25
    used.script({"text": "I look.", "calls": calls}, {"text": "Seen."})
    assert used.process(*used.run("--session", "s3")).code == 0
    content = used.store.read_bytes()
    assert content.count(b"Hello again.") == 1
    used.store.write_bytes(content.replace(b"Hello again.", b"Hello AGAIN."))
    sessions = used("list", "--json").document["sessions"]
    assert [(one["session_id"], one["state"], one["code"]) for one in sessions] == [
        ("s3", "completed", None),
        ("s2", "unreadable", "runtime_ledger_unreadable"),
        ("s1", "completed", None),
    ]
    (damage,) = used("verify", "--json").document["damages"]
    assert damage["run_id"] == sessions[1]["head_run_id"]
    assert (damage["code"], damage["sequence"], damage["type"]) == ("chain_broken", 4, "model.step_completed.v1")
    assert used("verify").code == 4
    assert used("show", "s2").code == 4
    assert used("status", "--fail-if-unsettled").code == 4
    assert "[runtime_ledger_unreadable]" in used("status", "s2").out
    assert used(*used.run("--session", "s2")).code == 4
    assert used("resume", "s2", "--script", used.folder / "script.json").code == 4
    assert used(*used.run("--session", "s1")).code == 0
