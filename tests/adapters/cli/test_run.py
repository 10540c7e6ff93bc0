"""`safepoint run`: one user message to its end."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from contextlib import closing
from typing import Any

import pytest

from safepoint.adapters.cli import documents

from .program import PAY, READ, WRITE, Program


def test_a_turn_prints_the_final_text_alone_on_standard_output(program: Program) -> None:
    program.script()
    ran = program(*program.run())
    assert (ran.code, ran.out) == (0, "All done.\n")
    assert (program.workspace / "config.json").read_text() == '{"port": 4000}'
    assert program.effects == ["paid"]


def test_progress_stands_on_standard_error(program: Program) -> None:
    program.script()
    err = program(*program.run("--session", "s1")).err
    assert "Session s1, run " in err
    assert "I do it." in err
    assert "write_file: called" in err
    assert "record_effect: answered" in err


def test_a_real_process_says_the_same(program: Program) -> None:
    program.script()
    ran = program.process(*program.run())
    assert (ran.code, ran.out) == (0, "All done.\n")


def test_json_is_one_object_with_the_documented_members(program: Program) -> None:
    program.script()
    document = program(*program.run("--session", "s1", "--json")).document
    assert list(document) == ["schema", *documents.MEMBERS[documents.RUN]]
    assert document.pop("run_id")
    assert document == {
        "schema": "safepoint.cli.run.v1",
        "session_id": "s1",
        "repaired": None,
        "status": "completed",
        "failure_class": None,
        "detail": "",
        "text": "All done.",
        "resumable": False,
        "reasons": [],
        "commands": [],
        "exit_code": 0,
    }


def test_a_second_turn_goes_on_in_the_session(program: Program) -> None:
    program.script({"text": "One."}, {"text": "Two."})
    assert program(*program.run("--session", "s1")).out == "One.\n"
    assert program(*program.run("--session", "s1")).out == "Two.\n"
    listed = program("show", "s1", "--json").document
    assert [run["kind"] for run in listed["runs"]] == ["turn", "turn"]


def test_the_message_may_come_from_standard_input(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.script({"text": "Hello."})
    monkeypatch.setattr(sys, "stdin", io.StringIO("From a pipe."))
    arguments = ("run", "--script", program.folder / "script.json", "--workspace", program.workspace)
    assert program(*arguments, "--session", "s1").code == 0
    assert "From a pipe." in program("show", "s1").out


def test_an_interrupted_run_of_the_session_is_closed_first_and_that_is_said(program: Program) -> None:
    program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "All done."})
    program.killed_at("P1", *program.run("--session", "s1"))
    ran = program(*program.run("--session", "s1", "--json"))
    assert ran.code == 0
    repaired = ran.document["repaired"]
    assert repaired["kind"] == "run_closed"
    assert f"An interrupted run was closed first: run {repaired['run_id']} ended failed." in ran.err
    assert "closed first" not in program(*program.run("--session", "s1")).err


def test_a_new_turn_may_follow_an_operation_that_is_unsettled(program: Program) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "I leave it."})
    program.killed_at("P4", *program.run("--session", "s1"))
    ran = program(*program.run("--session", "s1"))
    assert (ran.code, ran.out) == (0, "I leave it.\n")
    assert program.effects == ["paid"]


def answers(program: Program, session: str) -> list[dict[str, Any]]:
    run = program("show", session, "--full", "--json").document["run"]
    return [fact for fact in run["facts"] if fact["type"] == "tool.responded.v1"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"tool": "no_such_tool", "args": {}}, "unknown_tool"),
        ({"tool": "write_file", "args": {"path": 3}}, "args_schema_mismatch"),
        ({"tool": "write_file", "args_text": '{"path": "a", "path": "b"}'}, "args_not_strict_json"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered_to_the_model_and_the_run_goes_on(
    program: Program, call: dict[str, Any], code: str
) -> None:
    program.script({"text": "I try.", "calls": [call]}, {"text": "Then not."})
    ran = program(*program.run("--session", "s1"))
    assert (ran.code, ran.out) == (0, "Then not.\n")
    (answer,) = answers(program, "s1")
    assert (answer["facts"]["code"], answer["facts"]["effect"]) == (code, "none")


@pytest.mark.parametrize(
    ("policy", "executed"),
    [
        ((), ["list_files", "write_file", "record_effect"]),
        (("--deny",), ["list_files"]),
        (("--allow", "write_file"), ["list_files", "write_file"]),
        (("--allow", "write_file", "--allow", "record_effect"), ["list_files", "write_file", "record_effect"]),
        (("--deny", "--allow-all"), ["list_files", "write_file", "record_effect"]),
    ],
)
def test_without_a_terminal_only_what_is_permitted_runs(
    program: Program, policy: tuple[str, ...], executed: list[str]
) -> None:
    program.script({"text": "I do it.", "calls": [READ, WRITE, PAY]}, {"text": "Done."})
    assert program(*program.run("--session", "s1", *policy)).code == 0
    done = [answer["facts"]["tool_name"] for answer in answers(program, "s1") if not answer["facts"]["is_error"]]
    assert sorted(done) == sorted(executed)


def test_a_run_that_failed_prints_the_command_that_resumes_it_and_that_command_works(program: Program) -> None:
    program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "Done."}, drop_after=2)
    ran = program(*program.run("--session", "s1"))
    assert ran.code == 1
    assert "The run failed. The provider's answer broke off" in ran.err
    (command,) = [line for line in ran.err.splitlines() if "safepoint resume" in line]
    arguments = command.split("safepoint ", 1)[1].split()
    program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "Done."})
    resumed = program.bare(*arguments)
    assert (resumed.code, resumed.out) == (0, "Done.\n")


def test_a_failed_run_that_cannot_be_resumed_offers_no_resume(program: Program) -> None:
    """r3-168: a command that would only park is not offered."""
    program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "Done."}, drop_after=2)
    assert program(*program.run("--session", "s1"), "--json").document["resumable"] is True
    program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "Done."}, drop_after=2, window_tokens=1)
    ran = program(*program.run("--session", "s2"), "--json")
    assert (ran.code, ran.document["resumable"]) == (1, False)
    assert [one["code"] for one in ran.document["reasons"]] == ["history_too_large"]
    assert not any("safepoint resume" in one["command"] for one in ran.document["commands"])
    assert "safepoint resume" not in ran.err


def test_no_command_takes_bytes_that_are_no_text(program: Program) -> None:
    program.script()
    ran = program("run", "\udcff", "--script", program.folder / "script.json", "--workspace", program.workspace)
    assert ran.code == 2
    assert "not valid UTF-8" in ran.err


def test_arguments_and_results_stay_out_of_list_status_and_plan(program: Program) -> None:
    secret = "sk-test-abcdefghijklmnopqrst"
    program.script({"text": "I do it.", "calls": [{"tool": "record_effect", "args": {"path": "e", "line": secret}}]})
    program.killed_at("P4", *program.run("--session", "s1"))
    for command in (("list",), ("status",), ("status", "s1"), ("plan", "s1"), ("verify",), ("show", "s1")):
        for form in ((), ("--json",)):
            ran = program(*command, *form)
            assert secret not in ran.out + ran.err, command
    assert secret in program("show", "s1", "--full").out
    assert secret in json.dumps(program("show", "s1", "--full", "--json").document)


def test_a_history_that_does_not_fit_is_refused_with_both_numbers_and_cut_on_request(program: Program) -> None:
    program.script({"text": "x" * 4_000}, window_tokens=500)
    assert program(*program.run("--session", "s1")).code == 0
    ran = program(*program.run("--session", "s1"), "--json")
    assert (ran.code, ran.document["code"]) == (3, "history_too_large")
    assert "500" in ran.document["message"]
    assert "--context-turns fit" in ran.document["next_step"]
    assert len(program("show", "s1", "--json").document["runs"]) == 1, "nothing was begun"
    cut = program(*program.run("--session", "s1", "--context-turns", "fit"))
    assert cut.code == 0
    assert "Turns that are missing: 1." in cut.err
    assert program(*program.run("--session", "s1", "--context-turns", "0")).code == 0


@pytest.mark.parametrize("turns", ["-1", "some", "", "1.5", "9" * 10])
def test_a_number_of_turns_that_is_none_is_a_usage_error(program: Program, turns: str) -> None:
    program.script({"text": "Done."})
    ran = program(*program.run(f"--context-turns={turns}"), "--json")
    assert (ran.code, ran.document["code"]) == (2, "usage")
    assert not program.store.exists()


def test_a_session_with_a_damaged_turn_goes_on_without_it_on_request(program: Program) -> None:
    program.script({"text": "Done."})
    for _ in range(3):
        assert program(*program.run("--session", "s1")).code == 0
    damaged = program("show", "s1", "--json").document["runs"][1]["run_id"]
    with closing(sqlite3.connect(program.store, isolation_level=None)) as raw:
        rule = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'stored_events_update'").fetchone()[0]
        raw.execute("DROP TRIGGER stored_events_update")
        place = (f"run:{damaged}", 2)
        raw.execute("UPDATE stored_events SET state = x'00' WHERE originator_id = ? AND originator_version = ?", place)
        raw.execute(rule)
    ran = program(*program.run("--session", "s1"), "--json")
    assert (ran.code, ran.document["code"]) == (4, "history_unusable"), ran
    assert "the same command with --leave-out-damaged" in ran.document["next_step"]
    without = program(*program.run("--session", "s1", "--leave-out-damaged"))
    assert without.code == 0, without
    assert "its record is damaged" in without.err
    assert "Turns that are missing: 1." in without.err
    assert program(*program.run("--session", "s1")).code == 0
