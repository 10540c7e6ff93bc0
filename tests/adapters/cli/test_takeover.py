"""`safepoint takeover`, with real processes: an owner that works, is stopped, goes on, or cannot be seen. SPEC 15."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .program import Program, ended

WAITING = "echo here > started; until [ -e go ]; do sleep 0.05; done; echo done >> finished"
SHELL = {"tool": "run_shell", "args": {"command": WAITING}}


def until(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Wait until something has come about, in a process that lives meanwhile."""
    deadline = time.monotonic() + 60
    while not condition():
        assert process is None or process.poll() is None, ended(process)
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def working(program: Program) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts owners whose tool works until there is a file `go`."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        program.script({"text": "I work.", "calls": [SHELL]}, {"text": "Done."})
        process = program.start(*program.run("--session", "s1"))
        started.append(process)
        until((program.workspace / "started").exists, process)
        return process

    yield start
    (program.workspace / "go").touch()
    for process in started:
        if process.poll() is None:
            process.kill()
        if process.stdout is not None and not process.stdout.closed:
            process.communicate()


def state(program: Program) -> str:
    (session,) = program("list", "--json").document["sessions"]
    return str(session["state"])


def facts(program: Program) -> list[str]:
    return [fact["type"] for fact in program("show", "s1", "--json").document["run"]["facts"]]


def parked(program: Program) -> set[str]:
    return {reason["code"] for reason in program("plan", "s1", "--json").document["reasons"]}


def test_a_living_owner_is_asked_to_end_and_its_run_ends_in_order(
    program: Program, working: Callable[[], subprocess.Popen[str]]
) -> None:
    owner = working()
    taking = program.start("takeover", "s1", "--json")
    program.until_stopping("s1")
    (program.workspace / "go").touch()
    ran = ended(taking)
    assert (ran.code, ran.document["result"], ran.document["owner_pid"]) == (0, "ended", owner.pid)
    assert f"Ending process {owner.pid}" in ran.err
    assert ended(owner).code == 143
    assert facts(program)[-1] == "run.ended.v1"
    assert state(program) == "cancelled"


def test_a_stopped_owner_is_ended_too_and_what_it_started_is_not_over(
    program: Program, working: Callable[[], subprocess.Popen[str]]
) -> None:
    owner = working()
    owner.send_signal(signal.SIGSTOP)
    ran = program("takeover", "s1", "--json")
    assert (ran.code, ran.document["result"]) == (0, "ended")
    assert ran.document["repaired"]["status"] == "failed"
    assert ended(owner).code == -signal.SIGKILL
    assert parked(program) == {"dangling_tool_state", "effect_may_be_running"}
    (program.workspace / "go").touch()
    until(lambda: parked(program) == {"dangling_tool_state"})
    assert (program.workspace / "finished").read_text() == "done\n"


def test_a_fenced_owner_that_goes_on_writes_nothing_and_says_why(
    program: Program, working: Callable[[], subprocess.Popen[str]]
) -> None:
    owner = working()
    owner.send_signal(signal.SIGSTOP)
    ran = program("takeover", "s1", "--fence-only", "--json")
    assert (ran.code, ran.document["result"], ran.document["repaired"]["status"]) == (0, "forced", "failed")
    assert owner.poll() is None
    before = facts(program)
    assert parked(program) == {"dangling_tool_state", "effect_may_be_running"}
    (program.workspace / "go").touch()
    owner.send_signal(signal.SIGCONT)
    stale = ended(owner)
    assert stale.code == 5
    assert "safepoint: owner_fenced" not in stale.err  # a sentence, not a code alone
    assert "Another process has taken this session over" in stale.err
    assert f"`safepoint status --session s1 --store {program.store}`" in stale.err
    assert facts(program) == before
    assert parked(program) == {"dangling_tool_state"}


def test_an_owner_whose_lock_file_is_gone_is_left_alone(
    program: Program, working: Callable[[], subprocess.Popen[str]]
) -> None:
    owner = working()
    for lock in Path(f"{os.path.realpath(program.store)}.locks").glob("*.lock"):
        lock.unlink()
    ran = program("takeover", "s1", "--json")
    assert (ran.code, ran.document["code"]) == (5, "takeover_refused")
    assert "could not be looked at" in ran.err
    assert "--fence-only" in ran.err
    for command in ("cancel s1", "run more --session s1 --script", "abandon s1 --note over"):
        more = (program.folder / "script.json",) if command.endswith("--script") else ()
        refused = program(*command.split(), *more, "--json")
        assert (refused.code, refused.document["code"]) == (5, "session_busy"), command
        assert f"`safepoint takeover s1 --fence-only --store {program.store}`" in refused.document["next_step"]
        assert "safepoint cancel" not in refused.document["next_step"], "it is no way on"
    assert owner.poll() is None
    fenced = program("takeover", "s1", "--fence-only", "--json")
    assert (fenced.code, fenced.document["result"]) == (0, "forced")
    assert owner.poll() is None


def test_a_dead_owner_is_taken_over_at_once_and_so_is_a_session_that_nobody_owns(program: Program) -> None:
    program.script({"text": "I look.", "calls": [{"tool": "list_files"}]}, {"text": "Done."})
    program.killed_at("P2", *program.run("--session", "s1"))
    assert program("takeover", "s1", "--json").document["result"] == "after_death"
    assert state(program) == "failed"
    ran = program("takeover", "s1")
    assert (ran.code, "Nobody owned the session." in ran.out) == (0, True)
    assert "safepoint plan s1" in ran.out


def test_a_session_that_is_not_there_is_not_taken_over(program: Program) -> None:
    program.script({"text": "Done."})
    program(*program.run("--session", "s1"))
    assert program("takeover", "s2", "--json").document["code"] == "unknown_session"


def test_a_cancel_says_at_once_whom_it_asks_and_afterwards_that_it_may_still_be_carried_out(
    program: Program, working: Callable[[], subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safepoint.application.commands_from_elsewhere.ANSWER_SECONDS", 0.5)
    owner = working()
    owner.send_signal(signal.SIGSTOP)
    ran = program("cancel", "s1", "--json")
    assert (ran.code, ran.document["code"]) == (5, "session_busy")
    assert f"Asking process {owner.pid}, which owns the session; waiting up to 0.5 seconds." in ran.err
    assert "may still be carried out" in ran.document["message"]
    assert "safepoint takeover s1" in ran.document["next_step"]
    owner.send_signal(signal.SIGCONT)
    program.until_stopping("s1")
    (program.workspace / "go").touch()
    assert ended(owner).code == 1  # it was carried out
    assert state(program) == "cancelled"
