"""What changed since a run was interrupted: each kind parks and is named; accepted, it is recorded and told. Gate 6."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli import agents
from safepoint.adapters.tools import builtin
from safepoint.adapters.tools.decorator import tool

from ..models.chat_server import API_KEY, chunk, serving, streams
from .program import PAY, READ, Program, Ran

DONE = {"text": "Done."}
ANSWER = streams(chunk("Done."), chunk(finish="stop"))
Change = Callable[[Program, pytest.MonkeyPatch], tuple[str, ...]]


def another_model(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    program.script({"text": "I pay.", "calls": [PAY]}, DONE, model="newer")
    return ()


def another_prompt(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setattr(agents, "SYSTEM_PROMPT", "You are careful.")
    return ()


def a_narrower_policy(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    return ("--deny",)


@tool(name="record_effect", recovery="outcome_unknown")
def changed_record_effect(path: str, line: str, contract: str = "") -> str:
    """Record nothing."""
    return line


def a_tool_that_changed(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setattr(builtin, "record_effect", changed_record_effect)
    return ()


CHANGES: dict[str, tuple[Change, str, str, str]] = {
    "model": (another_model, "execution_profile_mismatch", "model", "model (scripted -> newer)"),
    "system prompt": (another_prompt, "execution_profile_mismatch", "system_prompt", "system prompt ("),
    "policy": (
        a_narrower_policy,
        "execution_profile_mismatch",
        "permission_policy",
        "permission policy (allow *, else deny -> deny)",
    ),
    "tools": (a_tool_that_changed, "tool_catalog_mismatch", "tools", "tools (record_effect has changed)"),
}


def interrupted(program: Program) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1"))


@pytest.mark.parametrize(("change", "code", "drift", "told"), CHANGES.values(), ids=CHANGES)
def test_each_kind_parks_and_names_what_changed_and_goes_on_once_it_is_accepted(
    program: Program, monkeypatch: pytest.MonkeyPatch, change: Change, code: str, drift: str, told: str
) -> None:
    interrupted(program)
    more = change(program, monkeypatch)
    resume: tuple[str | Path, ...] = ("resume", "s1", "--script", program.folder / "script.json", *more)
    parked = program(*resume, "--json")
    (reason,) = parked.document["reasons"]
    assert (parked.code, reason["code"]) == (3, code)
    changed = reason["detail"]["changed"]
    assert changed == (["record_effect"] if drift == "tools" else [drift])
    (way,) = [one["command"] for one in parked.document["commands"] if "--accept-drift" in one["command"]]
    assert f"--accept-drift {drift}" in way
    went = program.bare(*way.split()[1:], "--json")
    assert (went.code, went.document["decision"]) == (0, "continued"), went
    assert (
        f"The model is told: Note from the host: this run continues after an interruption. {SINCE} {told}" in went.err
    )
    assert [one["detail"]["what"] for one in went.document["notes"] if one["code"] == "drift_accepted"] == [drift]
    source = program("show", "s1", "--json").document["runs"][0]["run_id"]
    facts = program("show", "s1", "--run", source, "--json").document["run"]["facts"]
    claimed = facts[-1]
    assert claimed["type"] == "run.claimed.v1"
    assert drift in str(claimed["facts"]["accepted_drift"])
    assert program.effects == ["paid"]


SINCE = "Since then the following changed, and the user accepted it:"


def test_several_kinds_at_once_are_accepted_together_or_not_at_all(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(program)
    another_model(program, monkeypatch)
    another_prompt(program, monkeypatch)
    resume = ("resume", "s1", "--script", program.folder / "script.json")
    (reason,) = program(*resume, "--accept-drift", "model", "--json").document["reasons"]
    assert reason["detail"]["changed"] == ["system_prompt"]
    assert program(*resume, "--accept-drift", "model,system_prompt").code == 0


def test_what_is_accepted_one_by_one_is_accepted_together(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(program)
    another_model(program, monkeypatch)
    another_prompt(program, monkeypatch)
    each = ("--accept-drift", "model", "--accept-drift", "system_prompt")
    planned = program("plan", "s1", "--script", program.folder / "script.json", *each, "--json")
    assert planned.document["decision"] == "continue"
    assert "--accept-drift model,system_prompt" in offered(planned, "resume")
    went = program("resume", "s1", "--script", program.folder / "script.json", *each)
    assert (went.code, program.effects) == (0, ["paid"])
    assert program("resume", "s1", "--accept-drift", "model", "--accept-drift", "moods").code == 2


def test_another_provider_and_account_are_accepted_by_name(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.script({"text": "I look.", "calls": [READ]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1", "--deny"))
    monkeypatch.setenv("OPENAI_API_KEY", API_KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(ANSWER) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        resume = ("resume", "s1", "--provider", "openai", "--model", "scripted")
        (reason,) = program(*resume, "--json").document["reasons"]
        assert reason["detail"]["changed"] == ["provider", "account"]
        assert server.count() == 0
        went = program(*resume, "--accept-drift", "provider,account")
        assert (went.code, server.count()) == (0, 1), went


def test_a_policy_that_permits_more_is_not_accepted_and_no_command_offers_it(program: Program) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1", "--deny"))
    resume = ("resume", "s1", "--script", program.folder / "script.json", "--allow-all")
    for more in ((), ("--accept-drift", "permission_policy")):
        parked = program(*resume, *more, "--json")
        assert [one["code"] for one in parked.document["reasons"]] == ["execution_profile_mismatch"]
        assert not [one for one in parked.document["commands"] if "permission_policy" in one["command"]]
    again = offered(parked, "resume s1")
    assert "--allow-all" not in again
    assert program.bare(*shlex.split(again)[1:]).code == 0
    assert program.effects == []


def test_what_was_not_used_may_change_and_is_only_noted(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.script({"text": "I look.", "calls": [READ]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1"))
    a_tool_that_changed(program, monkeypatch)
    went: Any = program("resume", "s1", "--script", program.folder / "script.json", "--json")
    assert went.code == 0
    assert [one["code"] for one in went.document["notes"] if "tools" in one["code"]] == ["tools_changed_unused"]


def offered(ran: Ran, option: str) -> str:
    """The one command that is offered with an option."""
    (command,) = [str(one["command"]) for one in ran.document["commands"] if option in one["command"]]
    return command


def test_what_is_offered_after_a_plan_accepts_what_the_plan_accepted(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(program)
    another_model(program, monkeypatch)
    script = program.folder / "script.json"
    planned = program("plan", "s1", "--script", script, "--accept-drift", "model", "--max-steps", "7", "--json")
    assert planned.document["decision"] == "continue"
    command = offered(planned, "resume")
    assert "--max-steps 7" in command
    went = program.bare(*shlex.split(command)[1:], "--json")
    assert (went.code, went.document["decision"]) == (0, "continued"), went


def test_each_drift_that_is_found_is_joined_with_what_was_accepted_and_given(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(program)
    another_model(program, monkeypatch)
    script = program.folder / "script.json"
    resume = ("resume", "s1", "--script", script, "--deny", "--ask-elsewhere")
    assert program(*resume, "--json").code == 2, "the two contradict each other"
    parked = program(*resume[:-1], "--accept-drift", "model", "--json")
    command = offered(parked, "--accept-drift")
    assert "--accept-drift model,permission_policy" in command
    assert "--deny" in command
    assert "--deny" in offered(parked, "YOUR MESSAGE"), "nor does a new turn permit more than was said"
    went = program.bare(*shlex.split(command)[1:], "--json")
    assert (went.code, went.document["decision"]) == (0, "continued"), went


def test_where_no_record_names_the_script_the_command_has_no_place_for_it_and_a_sentence_says_so(
    program: Program,
) -> None:
    interrupted(program)
    planned = program("plan", "s1", "--json")
    assert shlex.split(offered(planned, "resume")) == ["safepoint", "resume", "s1", "--store", str(program.store)]
    assert planned.document["commands"][0]["what_for"].endswith("add --script FILE, which no record names")
    assert "No record names its script: add --script FILE" in program("plan", "s1").out


def test_a_workspace_that_is_not_there_is_in_no_command(program: Program) -> None:
    interrupted(program)
    gone = program.folder / "gone"
    parked = program("resume", "s1", "--script", program.folder / "script.json", "--workspace", gone, "--json")
    assert [one["code"] for one in parked.document["reasons"]] == ["workspace_identity_missing"]
    assert not [one for one in parked.document["commands"] if str(gone) in one["command"]]


def test_where_a_used_tool_is_gone_no_drift_is_offered_as_none_would_help(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(program)
    another_prompt(program, monkeypatch)
    monkeypatch.setattr(builtin, "record_effect", another_record)
    parked = program("resume", "s1", "--script", program.folder / "script.json", "--json")
    codes = {one["code"] for one in parked.document["reasons"]}
    assert codes == {"tool_catalog_mismatch", "execution_profile_mismatch"}
    assert not [one for one in parked.document["commands"] if "--accept-drift" in one["command"]]


@tool(name="record_more", recovery="outcome_unknown")
def another_record(path: str) -> str:
    """Record nothing."""
    return path
