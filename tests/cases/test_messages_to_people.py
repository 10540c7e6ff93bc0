"""Field reports: what a person is told, offered and not told. SPEC sections 13 and 17, F13, F14, F17, F18, R15."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ..adapters.cli.program import PAY, READ, WRITE, Program
from ..crash.harness.record import read_record
from .programs import DONE, codes_in, interrupted, offered, resume


def test_r3_152_a_history_beyond_the_window_parks_with_both_numbers_and_a_way_out(program: Program) -> None:
    """The history is larger than the model's window: the store stays readable, and something can be done."""
    program.script({"text": "I look.", "calls": [READ, WRITE]}, DONE, window_tokens=1)
    program.killed_at("P7", *program.run("--session", "s1"))
    ran = program(*resume(program), "--json")
    assert (ran.code, codes_in(ran)) == (3, ["history_too_large"])
    detail = ran.document["reasons"][0]["detail"]
    assert detail["have"] > detail["limit"] == 1
    ways = [command.split()[1] for command in offered(ran)]
    assert "show" in ways
    assert "run" in ways
    shown = program(*resume(program)).out
    assert f"have: {detail['have']}" in shown
    assert "limit: 1" in shown
    assert program("show", "s1", "--full").code == 0
    assert program("verify").code == 0
    exported = program.folder / "exported.jsonl"
    assert program("export", "s1", "--out", exported).code == 0
    assert len(exported.read_bytes().splitlines()) > len(read_record(program.store).streams)


def test_r3_159_each_cause_has_its_own_code_and_going_on_never_reopens_the_old_run(program: Program) -> None:
    """One indeterminate call A, one call B that was not dispatched; the user presses "continue"."""
    again = {"tool": "record_effect", "args": {"path": "effects.log", "line": "paid again"}}
    interrupted(program, "P4", PAY, again)  # both write one file, so the second waits for the first
    before = read_record(program.store)
    (run_id,) = before.run_ids("s1")
    planned = program("plan", "s1", "--json").document
    told = {one["call_id"]: (one["verdict"], one["reason"]) for one in planned["operations"]}
    assert told == {
        "call_1_1": ("indeterminate", "dispatch_without_response"),
        "call_1_2": ("definitely_not_dispatched", "new_protocol_before_dispatch"),
    }
    ran = program(*resume(program), "--json")
    assert codes_in(ran) == ["dangling_tool_state"]
    record = read_record(program.store)
    assert record.run_ids("s1") == [run_id]
    topics = [fact.topic for fact in record.run(run_id)[len(before.run(run_id)) :]]
    assert topics == ["tool.responded.v1", "run.ended.v1"], "the old run is closed, and nothing of it is done"
    ways = {shlex.split(one["command"])[1] for one in ran.document["commands"]}
    assert ways == {"show", "settle", "run"}, "inspect, say what happened, or a new turn that is told the truth"
    assert program.effects == ["paid"]


def test_r3_161_where_resuming_is_switched_off_no_plain_resume_is_offered(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(program, "P7", PAY)
    assert any(command.startswith("safepoint resume") for command in offered(program("plan", "s1", "--json")))
    monkeypatch.setenv("SAFEPOINT_RESUME", "0")
    for ran in (program("plan", "s1", "--json"), program(*resume(program), "--json")):
        (reason,) = ran.document["reasons"]
        assert (reason["code"], reason["expected"]) == ("resume_feature_disabled", True)
        assert not any(command.startswith("safepoint resume") for command in offered(ran))
        assert any(command.startswith("SAFEPOINT_RESUME=1 safepoint resume") for command in offered(ran))


def test_r3_161_a_run_that_fails_while_resuming_is_off_offers_no_resume(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFEPOINT_RESUME", "0")
    program.script({"text": "text"}, drop_after=1)
    ran = program(*program.run("--session", "s1"), "--json")
    assert (ran.code, ran.document["resumable"]) == (1, False)
    assert not any(command.startswith("safepoint resume") for command in offered(ran))


@pytest.mark.parametrize("command", ["resume", "plan"])
def test_r3_167_nothing_to_resume_is_said_once_and_not_asked_for_again(program: Program, command: str) -> None:
    """An empty store."""
    program.script(DONE)
    assert program(*program.run("--session", "s1")).code == 0
    ran = program.process(command)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)


SECRETS = (
    "sk-test-abcdefghijklmnopqrst",
    "AKIA0123456789ABCDEF",
    "MIIEpAIBAAKCAQEA",
)


def test_r3_144_credentials_in_an_output_stay_out_of_every_text_that_is_not_asked_to_show_them(
    program: Program,
) -> None:
    """O(A) with an API key, a cloud key and a PEM block: plan, park, list, status, log and error texts have none."""
    key, cloud, pem = SECRETS
    text = f"API_KEY={key}\naws={cloud}\n-----BEGIN RSA PRIVATE KEY-----\n{pem}\n-----END RSA PRIVATE KEY-----\n"
    (program.workspace / "env.txt").write_text(text)
    read = {"tool": "read_file", "args": {"path": "env.txt"}}
    program.script({"text": "I look.", "calls": [read]}, {"text": "I pay.", "calls": [PAY]}, DONE)
    program.killed_at("tool.record_effect.after_effect", *program.run("--session", "s1"))
    said = []
    for command in (("list",), ("status",), ("status", "s1"), ("plan", "s1"), ("show", "s1"), ("verify",)):
        for form in ((), ("--json",)):
            ran = program(*command, *form)
            said.append(ran.out + ran.err)
    for form in ((), ("--json",)):
        ran = program(*resume(program), *form)
        assert ran.code == 3
        said.append(ran.out + ran.err)
    for secret in SECRETS:
        assert not any(secret in text for text in said)
    redacted = program.process("export", "s1", "--redact").out
    assert "redact" in redacted
    assert not any(secret in redacted for secret in SECRETS)
    assert key in program("show", "s1", "--full", "--limit", "1000").out, "the ledger keeps what the tool returned"


def test_r3_146_no_fact_holds_a_value_of_the_environment(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A shell is run, a continuation is made and a workspace is named while a secret stands in the environment."""
    secret = "v-of-the-secret-8f2a"
    monkeypatch.setenv("SECRET_X", secret)
    command = 'test -n "$SECRET_X" && echo seen'
    program.script({"text": "I run it.", "calls": [{"tool": "run_shell", "args": {"command": command}}]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1"))
    assert program(*resume(program)).code == 0
    (answer,) = read_record(program.store).of_session("s1", "tool.responded.v1")
    assert answer["result"]["stdout"] == "seen\n", "the command had it"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert program.store in files
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
