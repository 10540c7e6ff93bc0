"""`safepoint reconcile` and `resume --reconcile`: the world is looked at again, and nothing happens twice. SPEC 10."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from ..tools.http_server import Answering, Effects, serving
from .program import Program, ended
from .test_takeover import until


def paying(contract: str, line: str = "paid") -> dict[str, Any]:
    """A call whose effect can be counted, with what its tool promises."""
    return {"tool": "record_effect", "args": {"path": "effects.log", "line": line, "contract": contract}}


def killed(program: Program, call: dict[str, Any], at: str = "P4") -> str:
    """A session whose process was killed after the effect, before it could be recorded; the operation's id."""
    program.script({"text": "I do.", "calls": [call]}, {"text": "Done."})
    program.killed_at(at, *program.run("--session", "s1"))
    (one,) = program("plan", "s1", "--json").document["operations"]
    return str(one["operation_id"])


def offered(program: Program, verb: str) -> list[str]:
    commands = [one["command"] for one in program("plan", "s1", "--json").document["commands"]]
    return [one for one in commands if one.startswith(f"safepoint {verb} ")]


def resume(program: Program, *more: str) -> tuple[str | Path, ...]:
    return ("resume", "s1", "--script", program.folder / "script.json", *more)


def test_an_idempotent_payment_is_delivered_again_with_its_key_and_happens_once(program: Program) -> None:
    operation = killed(program, paying("idempotent"))
    assert offered(program, "reconcile")
    program("cancel", "s1")  # whatever writes closes the run; what is open in it stays
    assert "safepoint reconcile s1" in program("status", "s1").out
    assert "safepoint reconcile s1" in program("show", "s1").out
    ran = program("reconcile", "s1")
    assert ran.code == 0
    assert f"record_effect (operation {operation}): settled: it was delivered again with its recorded key" in ran.out
    assert "safepoint plan s1" in ran.out
    assert program.effects == ["paid"]
    continued = program(*resume(program), "--json")
    assert (continued.code, continued.document["decision"], continued.document["reconciled"]) == (0, "continued", [])
    assert program.effects == ["paid"]


def test_a_resume_that_may_reconcile_does_it_in_one(program: Program) -> None:
    operation = killed(program, paying("idempotent"))
    (way,) = [one for one in offered(program, "resume") if "--reconcile" in one]
    assert "s1" in way
    assert program(*resume(program)).code == 3
    ran = program(*resume(program, "--reconcile", "--json"))
    assert (ran.code, ran.document["decision"]) == (0, "continued")
    (one,) = ran.document["reconciled"]
    assert (one["operation_id"], one["became"], one["observation"]) == (operation, "completed", "redelivered")
    assert program.effects == ["paid"]


def test_a_read_that_was_cut_off_is_read_again(program: Program) -> None:
    (program.workspace / "a.txt").write_text("before")
    killed(program, {"tool": "read_file", "args": {"path": "a.txt"}}, at="P2")
    (program.workspace / "a.txt").write_text("after")
    ran = program("reconcile", "s1", "--json")
    (one,) = ran.document["operations"]
    assert (ran.code, one["became"], one["observation"], one["is_error"]) == (0, "completed", "effect_free", False)
    shown = program("show", "s1", "--full", "--json").document["run"]["facts"]
    (content,) = [fact["content"]["result"]["text"] for fact in shown if fact["type"] == "tool.responded.v1"]
    assert "after" in content


@pytest.mark.parametrize("contract", ["outcome_unknown", "never_auto_retry"])
def test_what_promises_nothing_is_parked_and_the_person_is_told_what_to_do(program: Program, contract: str) -> None:
    operation = killed(program, paying(contract))
    assert not offered(program, "reconcile")
    ran = program("reconcile", "s1")
    assert ran.code == 3
    assert "[contract_forbids_recovery]" in ran.out
    assert f"safepoint settle {operation} --completed RESULT" in ran.out
    assert program.effects == ["paid"]
    again = program("reconcile", "s1", "--json")
    (one,) = again.document["operations"]
    assert (again.code, one["became"], one["code"], one["detail"]) == (3, "left", "parked", "contract_forbids_recovery")
    assert again.document["settled"] is False
    told = program("reconcile", "s1")
    assert (told.code, "only a person can say more (contract_forbids_recovery) [parked]" in told.out) == (3, True)
    assert f"safepoint settle {operation} --completed RESULT" in told.out
    named = program("reconcile", "s1", "--operation", operation, "--json")
    assert (named.code, named.document["operations"][0]["code"]) == (3, "parked")
    parked = program(*resume(program), "--json")
    assert (parked.code, [one["code"] for one in parked.document["reasons"]]) == (3, ["tool_recovery_parked"])
    assert program("settle", operation, "--completed", "paid", "--by", "ada", "--note", "seen").code == 0
    assert program(*resume(program)).code == 0
    assert program.effects == ["paid"]


def test_a_person_who_plans_is_told_whose_word_an_outcome_is(program: Program) -> None:
    operation = killed(program, paying("outcome_unknown"))
    program("cancel", "s1")
    assert program("settle", operation, "--completed", '"paid"', "--by", "ada", "--note", "asked the bank").code == 0
    plan = program("plan", "s1")
    assert "May be continued" in plan.out
    assert "Attested as completed by ada: asked the bank" in plan.out
    assert program("reconcile", "s1", "--json").document["settled"] is True


def test_a_person_who_plans_is_told_what_was_completed_by_looking_again(program: Program) -> None:
    operation = killed(program, paying("idempotent"))
    program("reconcile", "s1")
    plan = program("plan", "s1")
    assert "May be continued" in plan.out
    (line,) = [line for line in plan.out.splitlines() if operation in line]
    assert "recovery_bundle_completed" in line


EDIT = {"tool": "edit_file", "args": {"path": "a.txt", "old_text": "one", "new_text": "two"}}
WRITE = {"tool": "write_file", "args": {"path": "a.txt", "content": "two\n"}}


@pytest.mark.parametrize(
    ("at", "second", "became"),
    [
        ("P2", WRITE, ("parked", "reconcile_matches_prior_state")),
        ("P4", WRITE, ("completed", None)),
        ("P4", {"tool": "delete_file", "args": {"path": "a.txt"}}, ("completed", None)),
        ("P2", {"tool": "delete_file", "args": {"path": "a.txt"}}, ("parked", "reconcile_matches_prior_state")),
    ],
)
def test_where_a_later_call_touched_the_file_what_that_found_decides_and_not_the_bytes_of_now(
    program: Program, at: str, second: dict[str, Any], became: tuple[str, str | None]
) -> None:
    (program.workspace / "a.txt").write_text("one\n")
    operation = killed(program, EDIT, at)
    done_before = {"text": "I do.", "calls": [EDIT]}
    program.script(done_before, {"text": "By another way.", "calls": [second]}, {"text": "Done."})
    assert program(*program.run("--session", "s1")).code == 0
    assert (program.workspace / "a.txt").exists() is (second is WRITE)
    (one,) = program("reconcile", "s1", "--json").document["operations"]
    assert (one["operation_id"], one["became"], one["code"]) == (operation, *became)
    assert "when a later call found it" in one["detail"]


@pytest.mark.parametrize("how", ["settle", "forget"])
def test_what_a_dead_call_left_beside_its_file_goes_however_it_is_ended(program: Program, how: str) -> None:
    (program.workspace / "a.txt").write_text("one\n")
    operation = killed(program, EDIT, "tool.edit_file.temporary_written")
    (left,) = program.workspace.glob(".safepoint-*.tmp")
    assert left.read_text() == "two\n"
    if how == "settle":
        assert program("settle", operation, "--not-executed", "--by", "ada", "--note", "looked").code == 0
    else:
        assert program("forget", "s1", "--yes").code == 0
    assert [*program.workspace.glob(".safepoint-*.tmp")] == []
    assert (program.workspace / "a.txt").read_text() == "one\n"


def test_what_a_dead_call_left_in_another_folder_of_that_name_stays(program: Program) -> None:
    operation = killed(program, WRITE, "tool.write_file.temporary_written")
    program.workspace.rename(program.folder / "moved")
    program.workspace.mkdir()
    (left,) = (program.folder / "moved").glob(".safepoint-*.tmp")
    stranger = program.workspace / left.name
    stranger.write_text("somebody's")
    assert program("settle", operation, "--not-executed", "--by", "ada", "--note", "looked").code == 0
    assert stranger.exists()


def test_a_contract_that_nobody_looks_up_stays_as_it_is_and_can_be_settled(program: Program) -> None:
    operation = killed(program, paying("reconcile"))
    ran = program("reconcile", "s1", "--json")
    (one,) = ran.document["operations"]
    assert (ran.code, one["became"], one["code"]) == (3, "left", "no_reconciler")
    assert [way["command"].split()[2] for way in ran.document["commands"] if "settle" in way["command"]] == [
        operation,
        operation,
    ]
    assert program.effects == ["paid"]


def test_one_operation_can_be_named_and_only_of_its_session(program: Program) -> None:
    operation = killed(program, paying("idempotent"))
    unknown = program("reconcile", "s1", "--operation", "nowhere", "--json")
    assert (unknown.code, unknown.document["code"]) == (2, "unknown_operation")
    other = program("reconcile", "s2", "--operation", operation, "--json")
    assert (other.code, other.document["code"]) == (2, "unknown_session")
    ran = program("reconcile", "s1", "--operation", operation, "--json")
    assert (ran.code, ran.document["operations"][0]["became"]) == (0, "completed")
    again = program("reconcile", "s1", "--operation", operation, "--json")
    assert (again.code, again.document["operations"][0]["code"]) == (3, "not_indeterminate")


def test_in_a_session_without_anything_open_there_is_nothing_to_look_at(program: Program) -> None:
    program.script({"text": "Hello."})
    assert program(*program.run("--session", "s1")).code == 0
    ran = program("reconcile", "s1")
    assert (ran.code, "Nothing of session s1 waits" in ran.out) == (0, True)


def test_without_a_session_or_a_store_it_says_what_is_missing(program: Program) -> None:
    assert program("reconcile").code == 2
    assert program("reconcile", "s1").code == 2
    assert not program.store.exists()


def test_a_workspace_that_was_moved_is_named_and_a_wrong_one_is_refused(program: Program) -> None:
    killed(program, {"tool": "read_file", "args": {"path": "a.txt"}}, at="P2")
    moved = program.workspace.rename(program.folder / "moved")
    left = program("reconcile", "s1", "--json")
    assert (left.code, left.document["operations"][0]["code"]) == (3, "safety_observation_unavailable")
    found = program("reconcile", "s1", "--workspace", moved, "--json")
    assert (found.code, found.document["operations"][0]["became"]) == (0, "completed")


def test_where_nobody_can_look_a_person_says_first_that_it_is_over(program: Program) -> None:
    operation = killed(program, paying("idempotent"))
    program("cancel", "s1")
    for lock in program.store.parent.glob("*.locks/*.lock"):
        lock.unlink()
    left = program("reconcile", "s1", "--json")
    assert (left.code, left.document["operations"][0]["code"]) == (3, "could_not_look")
    waiting = program(*resume(program))
    assert (waiting.code, "when it has ended" in waiting.out) == (3, False), "it can never be seen to have ended"
    assert f"safepoint settle {operation} --declare-over" in waiting.out
    commands = [one["command"] for one in left.document["commands"]]
    assert any(one.startswith(f"safepoint settle {operation} --declare-over") for one in commands)
    said = program("settle", operation, "--declare-over", "--by", "ada", "--note", "the machine is gone")
    assert said.code == 0
    assert program("reconcile", "s1", "--json").document["operations"][0]["became"] == "completed"
    assert program.effects == ["paid"]


def held(effects: Effects, to: Answering) -> None:
    """Answers the first request, and then nobody."""
    if effects.count() == 1:
        effects.done.append(to.key)
        to.answer(201, {})
        return
    to.rfile.read(1)  # until whoever asked goes away


def test_ctrl_c_leaves_what_is_being_delivered_as_it_is_and_the_next_time_finishes(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(held) as server:
        monkeypatch.setenv("SAFEPOINT_HTTP_ORIGINS", f"{server.url}=86400")
        program.script({"text": "I pay.", "calls": [paying_over_http(server.url)]}, {"text": "Paid."})
        program.killed_at("P4", *program.run("--session", "s1", "--allow-all"))
        started = program.start("reconcile", "s1", "--json")
        until(lambda: server.count() == 2)
        started.send_signal(signal.SIGINT)
        stopped = ended(started)
        assert (stopped.code, stopped.document["operations"][0]["code"]) == (130, "stopped"), stopped
        assert "tool.recovery_decided.v1" not in [fact["type"] for fact in facts(program)]
        server.received.clear()
        assert program("reconcile", "s1").code == 0
        assert server.done == [server.done[0]] * 2, "the server ignores keys, and yet the promise of its owner holds"


def paying_over_http(url: str) -> dict[str, Any]:
    return {"tool": "http_request", "args": {"url": f"{url}/pay", "method": "POST", "body": "7"}}


def facts(program: Program) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = program("show", "s1", "--json").document["run"]["facts"]
    return found
