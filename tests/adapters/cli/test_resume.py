"""`safepoint plan` and `safepoint resume`: continue, or say why not and what can be done."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import safepoint
from safepoint.adapters.cli import documents

from .program import PAY, READ, WRITE, Program


def interrupted(program: Program, point: str, session: str = "s1", *calls: dict[str, Any]) -> None:
    """A run that was killed at a failpoint."""
    program.script({"text": "I do it.", "calls": list(calls or (PAY,))}, {"text": "All done."})
    program.killed_at(point, *program.run("--session", session))


def resume(program: Program, *arguments: str | Path) -> tuple[str | Path, ...]:
    return ("resume", *arguments, "--script", program.folder / "script.json")


@pytest.mark.parametrize(("point", "requests"), [("P6", 1), ("P7", 1)])
def test_a_run_that_is_proven_safe_is_continued_without_repeating_anything(
    program: Program, point: str, requests: int
) -> None:
    interrupted(program, point)
    assert (program.effects, program.requests) == (["paid"], requests)
    ran = program(*resume(program, "s1"))
    assert (ran.code, ran.out) == (0, "All done.\n")
    assert (program.effects, program.requests) == (["paid"], requests + 1)


def test_a_call_that_was_never_dispatched_is_told_and_not_executed(program: Program) -> None:
    interrupted(program, "P1")
    ran = program(*resume(program, "s1"), "--json")
    document = ran.document
    assert (ran.code, document["decision"], document["status"]) == (0, "continued", "completed")
    assert list(document) == ["schema", *documents.MEMBERS[documents.RESUME]]
    assert document["repaired"]["kind"] == "run_closed"
    assert document["source_run_id"] == document["repaired"]["run_id"] != document["run_id"]
    assert program.effects == []


def test_an_unsettled_operation_parks_with_one_plain_sentence_what_is_known_and_the_ways_on(program: Program) -> None:
    interrupted(program, "P4")
    ran = program(*resume(program, "s1"))
    assert ran.code == 3
    lines = ran.out.splitlines()
    assert lines[0] == (
        "Parked: A tool call was started and its outcome was never recorded: it may or may not have happened."
        " [dangling_tool_state]"
    )
    (known,) = [line for line in lines if "record_effect (call call_1_1" in line]
    assert "indeterminate, dispatch_without_response" in known
    assert "Nothing of it runs any more." in known
    commands = [line.strip() for line in lines if line.startswith("  safepoint ")]
    assert [command.split()[1] for command in commands] == ["show", "settle", "settle", "run"]
    assert all(f"--store {program.store}" in command for command in commands)
    assert program.effects == ["paid"]


def test_the_named_show_command_works_as_it_is_printed(program: Program) -> None:
    interrupted(program, "P4")
    (command,) = [
        one["command"]
        for one in program("plan", "s1", "--json").document["commands"]
        if one["command"].startswith("safepoint show")
    ]
    assert program.bare(*command.split()[1:]).code == 0


def test_each_operation_is_listed_with_its_own_verdict(program: Program) -> None:
    """r3-159: one call is indeterminate, the one behind it was never dispatched."""
    interrupted(program, "P4", "s1", PAY, {**PAY, "args": {**PAY["args"], "line": "again"}})
    ran = program("plan", "s1", "--json")
    verdicts = {one["call_id"]: (one["verdict"], one["reason"]) for one in ran.document["operations"]}
    assert verdicts == {
        "call_1_1": ("indeterminate", "dispatch_without_response"),
        "call_1_2": ("definitely_not_dispatched", "new_protocol_before_dispatch"),
    }
    said = program("plan", "s1").out
    assert "call call_1_1" in said
    assert "call call_1_2): definitely_not_dispatched" in said
    assert program.effects == ["paid"]


def test_a_parked_plan_as_json(program: Program) -> None:
    interrupted(program, "P4")
    ran = program("plan", "s1", "--json")
    document = ran.document
    assert list(document) == ["schema", *documents.MEMBERS[documents.PLAN]]
    assert (ran.code, document["decision"], document["exit_code"]) == (3, "park", 3)
    (reason,) = document["reasons"]
    assert set(reason) == {"code", "sentence", "next_step", "expected", "detail"}
    assert reason["code"] == "dangling_tool_state"
    (operation,) = document["operations"]
    assert operation == {
        "run_id": document["run_id"],
        "call_id": "call_1_1",
        "operation_id": operation["operation_id"],
        "tool": "record_effect",
        "mode": "never_auto_retry",
        "verdict": "indeterminate",
        "reason": "dispatch_without_response",
        "sentence": operation["sentence"],
        "effect": "unknown",
        "is_error": None,
        "settled": False,
        "over": "over",
        "processes": [],
        "attested": None,
        "declared_over": None,
    }


def test_a_plan_that_continues_names_the_boundary_and_the_command(program: Program) -> None:
    interrupted(program, "P6")
    ran = program("plan", "s1", "--script", program.folder / "script.json", "--json")
    document = ran.document
    assert (ran.code, document["decision"], document["repair_pending"]) == (0, "continue", True)
    assert len(document["boundary_digest"]) == len(document["digest"]) == 64
    (way,) = document["commands"]
    assert program.bare(*way["command"].split()[1:]).out == "All done.\n"


def test_two_plans_of_the_same_boundary_are_equal(program: Program) -> None:
    interrupted(program, "P6")
    assert program("plan", "s1", "--json").document == program("plan", "s1", "--json").document


def test_without_a_name_the_session_that_was_used_last_is_resumed(program: Program) -> None:
    interrupted(program, "P6", "first")
    interrupted(program, "P6", "second")
    assert program(*resume(program), "--json").document["session_id"] == "second"


def test_without_a_name_the_only_one_with_something_to_resume_is_resumed(program: Program) -> None:
    interrupted(program, "P6", "first")
    program.script({"text": "Hello."})
    assert program(*program.run("--session", "second")).code == 0
    program.script({"text": "I do it.", "calls": [PAY]}, {"text": "All done."})
    assert program(*resume(program), "--json").document["session_id"] == "first"


def test_where_several_could_be_meant_they_are_listed(program: Program) -> None:
    interrupted(program, "P6", "first")
    interrupted(program, "P6", "second")
    program.script({"text": "Hello."})
    program(*program.run("--session", "third"))
    ran = program(*resume(program))
    assert ran.code == 2
    assert "Several sessions could be meant: second, first." in ran.err


def test_nothing_to_resume_is_one_line(program: Program) -> None:
    """r3-167."""
    program.script({"text": "Hello."})
    program(*program.run("--session", "s1"))
    ran = program("resume")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert [one["code"] for one in program("resume", "--json").document["reasons"]] == ["resume_candidate_missing"]


@pytest.mark.parametrize("command", ["resume", "plan"])
def test_resuming_where_no_store_is_makes_none(program: Program, command: str) -> None:
    ran = program(command)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert not program.store.exists()


def test_a_completed_session_that_is_named_parks_as_an_expected_state(program: Program) -> None:
    program.script({"text": "Hello."})
    program(*program.run("--session", "s1"))
    document = program("resume", "s1", "--script", program.folder / "script.json", "--json").document
    assert [(one["code"], one["expected"]) for one in document["reasons"]] == [("resume_candidate_missing", True)]


def test_an_expected_high_water_that_differs_parks(program: Program) -> None:
    interrupted(program, "P6")
    found = program("plan", "s1", "--json").document["high_water"]
    assert program("plan", "s1", "--expect-high-water", str(found)).code == 0
    document = program("plan", "s1", "--expect-high-water", "3", "--json").document
    assert [one["code"] for one in document["reasons"]] == ["runtime_offset_mismatch"]


def test_a_changed_model_parks_and_is_accepted_by_the_command_that_is_offered(program: Program) -> None:
    interrupted(program, "P6")
    program.script({"text": "I do it.", "calls": [PAY]}, {"text": "All done."}, model="another")
    document = program(*resume(program, "s1"), "--json").document
    assert [one["code"] for one in document["reasons"]] == ["execution_profile_mismatch"]
    (command,) = [one["command"] for one in document["commands"] if "--accept-drift" in one["command"]]
    assert "--accept-drift model" in command
    assert program.bare(*command.split()[1:]).out == "All done.\n"


def test_the_policy_of_the_run_is_used_again_and_another_one_parks(program: Program) -> None:
    program.script({"text": "I do it.", "calls": [PAY]}, {"text": "All done."})
    program.killed_at("P6", *program.run("--session", "s1", "--allow", "record_effect"))
    document = program("plan", "s1", "--allow-all", "--json").document
    assert [one["code"] for one in document["reasons"]] == ["execution_profile_mismatch"]
    assert program("plan", "s1").code == 0


def test_a_workspace_that_vanished_parks_and_one_that_moved_does_not(program: Program) -> None:
    interrupted(program, "P6")
    moved = program.folder / "moved"
    shutil.move(program.workspace, moved)
    ran = program("plan", "s1", "--json")
    assert (ran.code, [one["code"] for one in ran.document["reasons"]]) == (3, ["workspace_identity_missing"])
    ran = program("plan", "s1", "--workspace", moved, "--json")
    assert (ran.code, [note["code"] for note in ran.document["notes"]]) == (0, ["workspace_moved"])


def test_switched_off_it_says_so_and_nothing_is_lost(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(program, "P6")
    monkeypatch.setenv("SAFEPOINT_RESUME", "0")
    document = program(*resume(program, "s1"), "--json").document
    assert [one["code"] for one in document["reasons"]] == ["resume_feature_disabled"]
    assert any(one["command"].startswith("SAFEPOINT_RESUME=1 safepoint resume s1") for one in document["commands"])
    monkeypatch.delenv("SAFEPOINT_RESUME")
    assert program(*resume(program, "s1")).out == "All done.\n"


def test_a_scripted_run_needs_its_script_to_be_resumed_and_none_to_be_planned(program: Program) -> None:
    interrupted(program, "P6")
    assert program("plan", "s1", "--json").document["provider_assumed"] is True
    ran = program("resume", "s1")
    assert ran.code == 2
    assert "--script FILE" in ran.err


def test_what_would_park_anyway_parks_without_the_script(program: Program) -> None:
    interrupted(program, "P4")
    assert program("resume", "s1").code == 3


def test_a_continuation_that_is_interrupted_is_continued_again(program: Program) -> None:
    program.script(
        {"text": "One.", "calls": [READ]},
        {"text": "Two.", "calls": [WRITE]},
        {"text": "Three."},
    )
    program.killed_at("P7", *program.run("--session", "s1"))
    program.killed_at("P7", *resume(program, "s1"))
    ran = program(*resume(program, "s1"))
    assert (ran.code, ran.out) == (0, "Three.\n")
    assert program.requests == 3
    runs = program("show", "s1", "--json").document["runs"]
    assert [run["kind"] for run in runs] == ["turn", "continuation", "continuation"]
    assert [run["continued_by"] for run in runs] == [runs[1]["run_id"], runs[2]["run_id"], None]


def test_a_claim_that_was_never_started_is_repaired_and_its_target_continued(program: Program) -> None:
    interrupted(program, "P6")
    program.killed_at("P11.claim", *resume(program, "s1"))
    assert program("plan", "s1").code == 0
    ran = program(*resume(program, "s1"), "--json")
    assert (ran.code, ran.document["repaired"]["kind"]) == (0, "claim_repaired")
    assert (program.effects, program.requests) == (["paid"], 2)


def test_what_cannot_drift_is_not_accepted(program: Program) -> None:
    ran = program("plan", "s1", "--accept-drift", "weather")
    assert ran.code == 2
    assert "weather is nothing to accept" in ran.err


def test_a_turn_whose_budget_is_spent_is_continued_with_a_new_one_only(program: Program) -> None:
    steps = [{"text": f"Step {number}.", "calls": [READ], "tokens": 100} for number in range(1, 4)]
    script = program.script(*steps, {"text": "Done.", "tokens": 100})
    ran = program(*program.run("--session", "s1", "--max-steps", "2", "--max-tokens", "1000"), "--json")
    assert (ran.code, ran.document["failure_class"]) == (1, "step_limit")
    assert ran.document["detail"] == "the turn has used 2 of the 2 steps that it may use"
    assert [one["code"] for one in ran.document["reasons"]] == ["resume_candidate_missing"]
    parked = program("resume", "s1", "--script", script, "--json")
    assert (parked.code, parked.document["decision"]) == (3, "parked")
    (reason,) = parked.document["reasons"]
    assert (reason["detail"]["why"], reason["detail"]["have"], reason["detail"]["limit"]) == ("budget_spent", 2, 2)
    (more, *_) = [one["command"] for one in parked.document["commands"]]
    assert "--max-steps 4 --max-tokens 1000" in more
    said = program("resume", "s1", "--script", script).out
    assert said.startswith("Parked: The turn has used 2 of the 2 steps that it may use. [resume_candidate_missing]")
    assert program("resume", "s1", "--script", script, "--max-tokens", "150").code == 3
    resumed = program("resume", "s1", "--script", script, "--max-tokens", "1000", "--json")
    assert (resumed.code, resumed.document["text"]) == (0, "Done.")


def test_a_budget_of_tokens_that_cannot_be_counted_is_replaced_by_one_of_steps_in_the_command_that_is_offered(
    program: Program,
) -> None:
    script = program.script({"text": "I look.", "calls": [READ]}, {"text": "Done."})
    ran = program(*program.run("--session", "s1", "--max-tokens", "1000"), "--json")
    assert ran.document["detail"] == "the turn has used an unknown number of the 1000 tokens that it may use"
    (more, *_) = [one["command"] for one in program("plan", "s1", "--script", script, "--json").document["commands"]]
    assert "--max-tokens" not in more
    assert program.bare(*more.split()[1:]).out == "Done.\n"


@pytest.mark.parametrize("model", [None, safepoint.NamedModel("acme", "m1")])
def test_a_run_of_a_programs_own_loop_is_looked_at_here_and_resumed_there(program: Program, model: Any) -> None:
    tools = [safepoint.contract("pay", recovery="never_auto_retry")]
    with safepoint.open_sync(program.store, workspace=program.workspace, tools=tools, model=model) as runtime:
        session = runtime.session("bill")
        with pytest.raises(ZeroDivisionError), session.record("Pay the bill.") as run:  # noqa: PT012 (a script)
            run.model_step(safepoint.step(safepoint.tool_call("c1", "pay", {"amount": 5})))
            with run.tool_call("c1"):
                raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), runtime.session("talk").record("Say it."):
            raise ZeroDivisionError
    for command in ("plan", "resume"):
        parked = program(command, "bill")
        assert parked.code == 3
        assert "dangling_tool_state" in parked.out
    other = program("resume", "talk")
    assert other.code == 3
    assert "execution_profile_mismatch" in other.out
    accepted = ("--accept-drift", "system_prompt,permission_policy,tools,model,provider,account")
    resumed = program("resume", "talk", *accepted)
    assert resumed.code == 2, resumed.out
    assert "recorded by a program" in resumed.err
    assert "Resume it in that program" in resumed.err
