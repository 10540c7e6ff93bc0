"""`safepoint settle` and `abandon`: a person's word, recorded once, shown as such everywhere. SPEC sections 10, 11."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from .program import PAY, Program, ended
from .test_takeover import WAITING, until

NOTE = ("--by", "ada", "--note", "seen at the bank")


@pytest.fixture
def operation(program: Program) -> str:
    """A payment that was made, by a process that was killed before it could record that."""
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
    program.killed_at("P4", *program.run("--session", "s1"))
    assert program.effects == ["paid"]
    (one,) = program("plan", "s1", "--json").document["operations"]
    return str(one["operation_id"])


def operations(program: Program) -> list[dict[str, object]]:
    found = program("show", "s1", "--json").document["run"]["operations"]
    assert isinstance(found, list)
    return found


def resume(program: Program) -> tuple[str | Path, ...]:
    return ("resume", "s1", "--script", program.folder / "script.json", "--json")


def test_a_parked_run_names_the_words_that_settle_it(program: Program, operation: str) -> None:
    commands = [one["command"] for one in program("plan", "s1", "--json").document["commands"]]
    settling = [one for one in commands if one.startswith(f"safepoint settle {operation} ")]
    assert [one.split()[3] for one in settling] == ["--completed", "--not-executed"]
    assert "safepoint settle" in program("plan", "s1").out


def test_what_is_attested_is_continued_past_and_shown_as_attested_everywhere(program: Program, operation: str) -> None:
    ran = program("settle", operation, "--completed", '{"paid": 7}', *NOTE, "--json")
    assert (ran.code, ran.document["recorded"], ran.document["run_id"] is not None) == (0, "in_run", True)
    assert any(one["command"].startswith("safepoint plan s1") for one in ran.document["commands"])
    (one,) = operations(program)
    attested = one["attested"]
    assert isinstance(attested, dict)
    assert (one["verdict"], one["reason"], one["effect"]) == ("completed", "attested_completed", "done")
    assert (attested["statement"], attested["by"], attested["note"]) == ("completed", "ada", "seen at the bank")
    assert "Attested as completed by ada: seen at the bank." in program("show", "s1").out
    exported = [json.loads(line) for line in program("export", "s1").out.splitlines()]
    assert "seen at the bank" in json.dumps(exported)
    (planned,) = program("plan", "s1", "--json").document["operations"]
    assert planned["attested"] == attested
    continued = program(*resume(program))
    assert (continued.code, continued.document["decision"]) == (0, "continued")
    assert program.effects == ["paid"]
    assert program("status", "s1", "--json").document["unsettled"] == 0


def test_it_is_said_once(program: Program, operation: str) -> None:
    assert program("settle", operation, "--not-executed", *NOTE).code == 0
    again = program("settle", operation, "--not-executed", *NOTE, "--json")
    assert (again.code, again.document["recorded"]) == (0, "before")
    other = program("settle", operation, "--completed", "paid", *NOTE, "--json")
    assert (other.code, other.document["code"]) == (2, "already_attested")
    assert "ada attested operation" in other.err
    assert len([fact for fact in facts(program) if fact == "tool.attested.v1"]) == 1


def facts(program: Program) -> list[str]:
    return [fact["type"] for fact in program("show", "s1", "--json").document["run"]["facts"]]


@pytest.mark.parametrize(
    ("given", "result"),
    [("paid", "paid"), ("7", 7), ('"7"', "7"), ("@@here", "@here"), ("{not json", "{not json"), ("", "")],
)
def test_a_result_is_json_where_it_is_json_and_else_a_text(
    program: Program, operation: str, given: str, result: object
) -> None:
    assert program("settle", operation, "--completed", given, *NOTE).code == 0
    shown = program("show", "s1", "--full", "--json").document["run"]["facts"]
    (content,) = [fact["content"]["result"]["text"] for fact in shown if fact["type"] == "tool.responded.v1"]
    assert content == (result if isinstance(result, str) else json.dumps(result))


def test_a_result_can_stand_in_a_file(program: Program, operation: str) -> None:
    file = program.folder / "result.json"
    missing = program("settle", operation, "--completed", f"@{file}", *NOTE, "--json")
    assert (missing.code, missing.document["code"]) == (2, "usage")
    file.write_text('{"paid": 7}')
    assert program("settle", operation, "--completed", f"@{file}", *NOTE).code == 0
    assert '"effect": "done"' in json.dumps(operations(program))


@pytest.mark.parametrize(
    "words", [(), ("--completed", "x", "--not-executed"), ("--not-executed", "--declare-over"), ("--completed",)]
)
def test_exactly_one_thing_is_said(program: Program, operation: str, words: tuple[str, ...]) -> None:
    assert program("settle", operation, *NOTE, *words).code == 2
    assert "tool.attested.v1" not in facts(program)


def test_what_is_known_needs_no_word_and_what_is_not_there_has_none(program: Program, operation: str) -> None:
    unknown = program("settle", "nowhere", "--not-executed", *NOTE, "--json")
    assert (unknown.code, unknown.document["code"]) == (2, "unknown_operation")
    over = program("settle", operation, "--declare-over", *NOTE, "--json")
    assert (over.code, over.document["code"]) == (2, "known_to_be_over")
    assert "--not-executed" in over.document["next_step"]


def test_an_operation_that_may_still_run_is_not_settled_and_one_that_nobody_can_see_is_declared_over_first(
    program: Program,
) -> None:
    program.script(
        {"text": "I work.", "calls": [{"tool": "run_shell", "args": {"command": WAITING}}]}, {"text": "Done."}
    )
    owner = program.start(*program.run("--session", "s1"))
    until((program.workspace / "started").exists, owner)
    owner.send_signal(signal.SIGKILL)
    ended(owner)
    (one,) = program("plan", "s1", "--json").document["operations"]
    operation = one["operation_id"]
    for words in (("--completed", "x"), ("--not-executed",), ("--declare-over",)):
        ran = program("settle", operation, *words, *NOTE, "--json")
        assert (ran.code, ran.document["code"]) == (3, "operation_not_over")
        assert f"pid {one['processes'][0]['pid']}" in ran.err
    for lock in Path(f"{os.path.realpath(program.store)}.locks").glob("*.lock"):
        lock.unlink()
    assert program("settle", operation, "--not-executed", *NOTE, "--json").document["code"] == "operation_not_over"
    codes = [reason["code"] for reason in program("plan", "s1", "--json").document["reasons"]]
    assert "effect_may_be_running" in codes
    commands = [one["command"] for one in program("plan", "s1", "--json").document["commands"]]
    assert any(f"settle {operation} --declare-over" in command for command in commands)
    (program.workspace / "go").touch()
    until((program.workspace / "finished").exists)
    assert program("settle", operation, "--declare-over", *NOTE).code == 0
    codes = [reason["code"] for reason in program("plan", "s1", "--json").document["reasons"]]
    assert codes == ["dangling_tool_state"]
    assert "Declared over by ada" in program("show", "s1").out
    assert program("settle", operation, "--completed", "done", *NOTE).code == 0


def test_a_living_owner_is_asked_to_record_it(program: Program, operation: str) -> None:
    shell = {"tool": "run_shell", "args": {"command": WAITING}}
    work = {"text": "I work.", "calls": [shell]}
    program.script({"text": "I pay.", "calls": [PAY]}, work, {"text": "Done."}, {"text": "Thanks."})
    owner = program.start(*program.run("--session", "s1"))
    until((program.workspace / "started").exists, owner)
    ran = program("settle", operation, "--completed", "paid", *NOTE, "--json")
    assert (ran.code, ran.document["recorded"], ran.document["told_later"]) == (0, "in_run", True)
    assert f"Asking process {owner.pid}" in ran.err
    (program.workspace / "go").touch()
    assert ended(owner).code == 0
    told = program(*program.run("--session", "s1", "--json"))
    assert told.code == 0
    (message,) = [
        fact["content"]["text"]["text"]
        for fact in program("show", "s1", "--full", "--json").document["run"]["facts"]
        if fact["type"] == "message.host.v1"
    ]
    assert message.endswith("is, as attested by ada, completed, with this result: paid.")
    assert program("verify").code == 0


def test_a_stopped_shell_is_not_called_completed_while_its_effect_is_unknown(program: Program) -> None:
    program.script(
        {"text": "I work.", "calls": [{"tool": "run_shell", "args": {"command": "echo > started; exec sleep 60"}}]}
    )
    owner = program.start(*program.run("--session", "s1"))
    until((program.workspace / "started").exists, owner)
    program("cancel", "s1")
    ended(owner)
    said = program("status", "s1").out
    assert "Operations without a certain outcome: 1." in said
    (line,) = [line for line in said.splitlines() if "run_shell" in line]
    assert "answered, but whether its effect happened is not known" in line
    assert "completed" not in line


# Damaged runs


def damage(program: Program) -> None:
    """Overwrite a byte of the newest run's last event, as a bad disk does; the triggers of the store do not see it."""
    connection = sqlite3.connect(program.store)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(
        "UPDATE stored_events SET state = replace(CAST(state AS TEXT), '\"event_id\"', '\"event_ix\"') "
        "WHERE topic = 'run.ended.v1'"
    )
    connection.execute("UPDATE stored_events SET state = CAST(state AS BLOB)")
    for _, sql in triggers:
        connection.execute(sql)
    connection.commit()
    connection.close()


def test_a_damaged_run_is_given_up_and_the_session_goes_on(program: Program, operation: str) -> None:
    assert program("abandon", "s1", *NOTE, "--json").document["code"] == "nothing_to_abandon"
    damage(program)
    program.script({"text": "On."})
    refused = program(*program.run("--session", "s1", "--json"))
    assert refused.code == 4
    assert "safepoint abandon s1" in refused.document["next_step"]
    settled = program("settle", operation, "--not-executed", *NOTE, "--json")
    assert (settled.code, settled.document["code"]) == (4, "run_damaged")
    ran = program("abandon", "s1", *NOTE, "--json")
    assert (ran.code, ran.document["result"], ran.document["watched"]) == (0, "abandoned", [operation])
    assert ran.document["commands"][0]["what_for"] == "start the next turn; add --script FILE, which no record names"
    assert program("abandon", "s1", *NOTE, "--json").document["result"] == "before"
    (session,) = program("list", "--json").document["sessions"]
    assert session["state"] == "abandoned"
    settled = program("settle", operation, "--not-executed", *NOTE, "--json")
    assert (settled.code, settled.document["recorded"]) == (0, "in_session")
    went_on = program(*program.run("--session", "s1", "--json"))
    assert (went_on.code, went_on.document["status"]) == (0, "completed")
    (session,) = program("list", "--json").document["sessions"]
    assert session["state"] == "completed"


def test_a_session_without_a_name_or_a_note_is_not_given_up(program: Program, operation: str) -> None:
    assert program("abandon", "--note", "x").code == 2
    assert program("abandon", "s1").code == 2
    assert program("abandon", "s1", "--note", "").code == 2
    assert program("abandon", "nowhere", "--note", "x", "--json").document["code"] == "unknown_session"


# A model has no word


@pytest.mark.parametrize("detached", ["", "setsid "])
def test_a_tool_does_not_settle_approve_or_end_anything(program: Program, operation: str, detached: str) -> None:
    own = f"{sys.executable} -m safepoint"
    store = f"--store {program.store} --json"
    words = (
        f"settle {operation} --not-executed --note x",
        "approve some-request",
        "abandon s1 --note x",
        "takeover s1",
        "adopt --note x",
    )
    command = "; ".join(f"{detached}{own} {word} {store} >> said.jsonl" for word in words)
    shell = {"tool": "run_shell", "args": {"command": command}}
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "I say so.", "calls": [shell]}, {"text": "Done."})
    assert program.process(*program.run("--session", "s1")).code == 0
    said = [json.loads(line) for line in (program.workspace / "said.jsonl").read_text().splitlines()]
    assert [one["code"] for one in said] == ["not_a_person"] * len(words)
    first = program("show", "s1", "--json").document["runs"][0]["run_id"]
    shown = program("show", "s1", "--run", first, "--json").document["run"]
    assert "tool.attested.v1" not in [fact["type"] for fact in shown["facts"]]
    assert program("settle", operation, "--not-executed", *NOTE).code == 0  # and a person does
