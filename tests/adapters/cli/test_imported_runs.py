"""A history of another program, taken in and gone on with: by the very commands that are offered. SPEC 6, 13 and 19."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.command_lines import CommandLines
from safepoint.adapters.cli.ways_on import Parking, ways_on
from safepoint.adapters.interchange.formats import history_formats
from safepoint.domain.planning.outcome import Reason
from safepoint.domain.reasons import ParkReason

from .program import PAY, Program, Ran

Line = dict[str, Any]
SETTLED, OPEN = True, False


def openai_chat(cwd: str) -> list[Line]:
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]


def openai_responses(cwd: str) -> list[Line]:
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]


def anthropic(cwd: str) -> list[Line]:
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
    ]


def claude_code(cwd: str) -> list[Line]:
    user, call, result = anthropic(cwd)
    spine: Line = {"sessionId": "theirs", "cwd": cwd, "timestamp": "2026-01-01T10:00:00.000Z"}
    model: Line = {"id": "msg_1", "model": "claude", "stop_reason": "tool_use", **call}
    return [
        {"type": "user", "uuid": "1", "parentUuid": None, **spine, "message": user},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", **spine, "message": model},
        {"type": "user", "uuid": "3", "parentUuid": "2", **spine, "message": result},
    ]


def codex(cwd: str) -> list[Line]:
    at = "2026-01-01T10:00:00.000Z"
    meta: Line = {"timestamp": at, "type": "session_meta", "payload": {"id": "theirs", "cwd": cwd}}
    return [meta, *({"timestamp": at, "type": "response_item", "payload": item} for item in openai_responses(cwd))]


def maka(cwd: str) -> list[Line]:
    ids: Line = {"sessionId": "theirs", "invocationId": "i1", "runId": "r1", "turnId": "t1", "partial": False}
    call: Line = {"kind": "function_call", "id": "c1", "name": "look", "args": {}}
    answer: Line = {"kind": "function_response", "id": "c1", "name": "look", "result": "ok"}
    return [
        {"id": "1", "ts": 1, **ids, "role": "user", "author": "user", "content": {"kind": "text", "text": "Look."}},
        {"id": "2", "ts": 2, **ids, "role": "model", "author": "agent", "content": call, "refs": {"toolCallId": "c1"}},
        {"id": "3", "ts": 3, **ids, "role": "tool", "author": "tool", "content": answer, "refs": {"toolCallId": "c1"}},
    ]


FORMATS: dict[str, Callable[[str], list[Line]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "claude-code": claude_code,
    "codex": codex,
    "maka": maka,
}
PAYS = ({"text": "Played by another program."}, {"text": "I pay.", "calls": [PAY]}, {"text": "Done."})


def imported(program: Program, name: str, *, settled: bool, cwd: str | None = None) -> Ran:
    """The judgement of a history that stops after its call's answer, or before it, which is then in the store."""
    lines = FORMATS[name](cwd or str(program.workspace))
    file = program.folder / "history.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in (lines if settled else lines[:-1])))
    program.script(*PAYS)
    judged = program.bare("judge", file, "--format", name, "--json")
    assert program("import", file, "--format", name, "--session", "x").code == 0
    return judged


def planned(program: Program, *more: str) -> Ran:
    script = ("--script", program.folder / "script.json", "--workspace", program.workspace)
    return program("plan", "x", *script, *more, "--json")


def offers(parked: Ran) -> list[list[str]]:
    """The resumes that are offered, as they are typed."""
    commands = [shlex.split(way["command"]) for way in parked.document["commands"]]
    assert all(command[0] == "safepoint" for command in commands)
    return [command[1:] for command in commands if command[1] == "resume"]


def codes(ran: Ran) -> set[str]:
    return {reason["code"] for reason in ran.document["reasons"]}


def what_follows(program: Program, parked: Ran, before: tuple[Any, ...] = ()) -> Iterator[Ran]:
    """Every plan that the resumes that are offered come to in the end; nothing is executed.

    No command that is offered leads back to a park whose reasons and offers were seen on the way to it.
    """
    here = (sorted(codes(parked)), [way["command"] for way in parked.document["commands"]])
    assert here not in before, "the commands that are offered go in a circle"
    resumes = offers(parked)
    if not resumes:
        yield parked
    for _, *arguments in resumes:
        next_one = program.bare("plan", *arguments, "--json")
        if next_one.document["decision"] == "continue":
            yield next_one
        else:
            yield from what_follows(program, next_one, (*before, here))


def test_every_format_of_another_program_is_among_them() -> None:
    assert set(FORMATS) == set(history_formats()) - {"safepoint"}


@pytest.mark.parametrize("name", FORMATS)
def test_an_imported_history_goes_on_with_the_command_that_is_offered(program: Program, name: str) -> None:
    judged = imported(program, name, settled=SETTLED)
    assert (judged.code, judged.document["decision"]) == (0, "continue")
    parked = planned(program)
    assert (parked.code, codes(parked)) == (3, {"foreign_run_not_adopted", "execution_profile_mismatch"})
    went = program.bare(*offers(parked)[0], "--json")
    assert (went.code, went.document["decision"], went.document["status"]) == (0, "continued", "completed"), went
    assert (program.requests, program.effects) == (2, []), "nothing is permitted where nobody can be asked"
    source = program("show", "x", "--json").document["runs"][0]["run_id"]
    claimed = program("show", "x", "--run", source, "--json").document["run"]["facts"][-1]
    assert claimed["type"] == "run.claimed.v1"
    assert {"foreign_run", "permission_policy"} <= set(claimed["facts"]["accepted_drift"])
    assert "permission policy (unknown -> deny)" in went.err
    assert program("plan", "x", "--json").code == 3, "and only once"


@pytest.mark.parametrize("name", FORMATS)
def test_where_its_call_was_not_answered_it_parks_whatever_is_accepted(program: Program, name: str) -> None:
    judged = imported(program, name, settled=OPEN)
    assert (judged.code, judged.document["decision"]) == (3, "park")
    parked = planned(program)
    assert "dangling_tool_state" in codes(parked)
    ends = list(what_follows(program, parked))
    assert [codes(end) for end in ends] == [{"dangling_tool_state"}] * len(offers(parked))
    for command in offers(parked):
        assert program.bare(*command, "--json").document["decision"] == "parked"
    assert (program.requests, program.effects) == (0, [])


GIVEN: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "deny": ("--deny",),
    "ask": ("--ask",),
    "ask elsewhere": ("--ask-elsewhere",),
    "all": ("--allow-all",),
    "all, else ask elsewhere": ("--allow-all", "--ask-elsewhere"),
    "a tool": ("--allow", "record_effect"),
    "adopted": ("--adopt",),
    "accepted": ("--accept-drift", "provider,model,account,system_prompt,protocol"),
    "all that can be": ("--adopt", "--allow-all", "--accept-drift", "provider,permission_policy,tools"),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("is_workspace", [False, True], ids=["a folder", "a workspace"])
def test_each_command_that_is_offered_says_all_that_is_needed(
    program: Program, given: tuple[str, ...], is_workspace: bool
) -> None:
    if is_workspace:  # which the history does not name: it knows of no workspaces
        program.script({"text": "Hello."})
        assert program(*program.run("--session", "other")).code == 0
    imported(program, "openai-chat", settled=SETTLED)
    parked = planned(program, *given)
    assert parked.document["decision"] == "park"
    ends = list(what_follows(program, parked))
    assert [end.document["decision"] for end in ends] == ["continue"] * len(offers(parked))
    assert 1 <= len(ends) <= 2
    for command in offers(parked):
        assert "--allow" not in " ".join(command), "no policy is offered that lets a call through unasked"
    went = program.bare(*offers(parked)[-1], "--json") if "--ask-elsewhere" not in given else None
    assert went is None or went.document["decision"] == "continued"
    assert program.effects == []


def test_what_was_asked_of_a_person_is_executed_once_although_its_process_was_killed(program: Program) -> None:
    imported(program, "codex", settled=SETTLED)
    program.script(*PAYS[:2], *PAYS[1:])  # told of the permission, the model calls once more
    (ask,) = offers(planned(program, "--ask-elsewhere"))
    process = program.start(*ask)
    try:
        deadline = time.monotonic() + 60
        while not (asked := program("status", "--json").document["permissions"]):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
    parked = planned(program)
    assert codes(parked) == {"foreign_run_not_adopted", "pending_permission"}, "what it goes on from is as it was"
    (approve,) = [way["command"] for way in parked.document["commands"] if " approve " in way["command"]]
    assert asked[0]["request_id"] in approve
    assert program.bare(*shlex.split(approve)[1:]).code == 0
    (resume,) = offers(planned(program))
    went = program.bare(*resume, "--json")
    assert (went.code, went.document["status"], program.effects) == (0, "completed", ["paid"]), went


def test_where_it_worked_in_a_folder_that_is_not_here_a_person_names_one(program: Program) -> None:
    """A history of another machine: no tool would find anything there."""
    imported(program, "codex", settled=SETTLED, cwd=str(program.folder / "elsewhere"))
    for more in ((), ("--adopt",)):
        parked = program("plan", "x", "--script", program.folder / "script.json", *more, "--json")
        assert "workspace_identity_missing" in codes(parked)
        (named,) = [command for command in offers(parked) if "FOLDER" in command]
        there = [str(program.workspace) if part == "FOLDER" else part for part in named]
        going_on = program.bare("plan", *there[1:], "--json")
        assert "workspace_identity_missing" not in codes(going_on)
    went = program.bare(*offers(going_on)[0], "--json")
    assert (went.code, went.document["status"], program.requests) == (0, "completed", 2), went
    assert program("show", "x", "--json").document["run"]["cwd"] == str(program.workspace)


def test_without_a_model_at_hand_what_is_offered_names_all_that_no_record_tells(program: Program) -> None:
    imported(program, "openai-chat", settled=SETTLED)
    parked = program("plan", "x", "--workspace", program.workspace, "--json").document
    ways = {way["command"]: way["what_for"] for way in parked["commands"]}
    asking = [command for command in ways if shlex.split(command)[1] in {"resume", "run"}]
    assert len(asking) == 3
    for command in asking:
        assert "unknown" not in command, "which is no model's name"
        assert ways[command].endswith("; add --model NAME, which no record names")
    changed = parked["reasons"][-1]["detail"]["changed"]
    assert {"model", "account"} <= set(changed), "whichever is added, it is not the recorded one"
    told = program("plan", "x", "--workspace", program.workspace)
    assert "No record names its model: add --model NAME to a command that asks it." in told.out
    named = program("plan", "x", "--workspace", program.workspace, "--model", "newer", "--json").document
    assert named["reasons"][-1]["detail"]["now"]["model"] == "newer"


def policy_reason(recorded: str, now: str, *acceptable: str) -> Reason:
    policy = "permission_policy"
    values: dict[str, Any] = {
        "changed": [policy],
        "recorded": {policy: recorded},
        "now": {policy: now},
        "acceptable": [*acceptable],
    }
    return Reason(ParkReason.EXECUTION_PROFILE_MISMATCH, values)


@pytest.mark.parametrize(
    ("recorded", "policies"),
    [
        ("theirs", [["--deny"]]),
        (f"allow sha256:{'0' * 64}, else deny", [["--deny"]]),
        (f"allow sha256:{'0' * 64}, else ask", [["--ask"], ["--deny"]]),
        ('allow ["pay"], else ask', [[]]),  # which is taken again
    ],
)
def test_where_a_name_does_not_tell_the_policy_only_what_certainly_narrows_it_is_offered(
    recorded: str, policies: list[list[str]]
) -> None:
    commands = CommandLines(Path("s.sqlite"), permissions=("--allow-all",))
    parking = Parking("x", "r", [policy_reason(recorded, "allow *, else deny")], ())
    resumes = [shlex.split(way.command) for way in ways_on(parking, commands) if " resume " in way.command]
    assert [[part for part in one if part in {"--ask", "--deny", "--allow-all"}] for one in resumes] == policies
    assert all(("permission_policy" in one) is bool(policies[0]) for one in resumes)


def test_the_folder_that_was_looked_at_is_not_offered_again() -> None:
    missing = Reason(ParkReason.WORKSPACE_IDENTITY_MISSING, {"paths": ["/gone"], "expected": "workspace:v1:1"})
    ways = ways_on(Parking("x", "r", [missing], (), "/gone"), CommandLines(Path("s.sqlite")))
    assert not [way for way in ways if "--workspace /gone" in way.command]
    assert [way for way in ways if "--workspace FOLDER" in way.command]
    elsewhere = ways_on(Parking("x", "r", [missing], (), "/there"), CommandLines(Path("s.sqlite")))
    assert [way for way in elsewhere if "--workspace /there" in way.command]
