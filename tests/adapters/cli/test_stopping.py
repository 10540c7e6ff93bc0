"""Ctrl-C, SIGTERM and `safepoint cancel`: a run is stopped in order, or at once."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import pytest

from .program import Program, ended

Call: TypeAlias = Mapping[str, object]
SLEEP = {"tool": "run_shell", "args": {"command": "echo here > started; exec sleep 30"}}
WAIT = {"tool": "run_shell", "args": {"command": "echo here > started; until [ -e go ]; do sleep 0.05; done"}}


@pytest.fixture
def sleeping(program: Program) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts runs whose tool sleeps, or waits for a file `go`; each is ended when the test is over."""
    started: list[subprocess.Popen[str]] = []

    def start(
        session: str, *more: str, call: Mapping[str, object] = SLEEP, **environment: str
    ) -> subprocess.Popen[str]:
        program.script({"text": "I wait.", "calls": [call]}, {"text": "Done."})
        process = program.start(*program.run("--session", session, *more), **environment)
        started.append(process)
        deadline = time.monotonic() + 30
        while not (program.workspace / "started").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_run_in_order(
    program: Program, sleeping: Callable[..., subprocess.Popen[str]], sent: signal.Signals, code: int
) -> None:
    process = sleeping("s1", "--json", call=WAIT)
    process.send_signal(sent)
    program.until_stopping("s1")
    (program.workspace / "go").touch()
    ran = ended(process)
    document = ran.document
    assert (ran.code, document["exit_code"], document["status"]) == (code, code, "cancelled")
    assert "Stopping: tools that run are waited for" in ran.err
    run = program("show", "s1", "--json").document["run"]
    assert run["cancel_requested_by"]
    assert [one["verdict"] for one in run["operations"]] == ["completed"]
    assert [fact["type"] for fact in run["facts"]][-1] == "run.ended.v1"


def test_another_process_stops_the_run(program: Program, sleeping: Callable[..., subprocess.Popen[str]]) -> None:
    process = sleeping("s1")
    ran = program("cancel", "s1", "--json")
    assert (ran.code, ran.document["result"]) == (0, "stopping")
    assert ended(process).code == 1
    assert program("cancel", "s1", "--json").document["result"] == "nothing_open"


def test_a_run_that_a_dead_process_left_is_ended_as_cancelled(program: Program) -> None:
    program.script({"text": "I wait.", "calls": [{"tool": "list_files"}]}, {"text": "Done."})
    program.killed_at("P1", *program.run("--session", "s1"))
    document = program("cancel", "s1", "--json").document
    assert list(document) == ["schema", "session_id", "run_id", "result"]
    assert document["result"] == "closed"
    assert program("list", "--json").document["sessions"][0]["state"] == "cancelled"


def test_a_session_that_another_process_works_on_is_busy(
    program: Program, sleeping: Callable[..., subprocess.Popen[str]]
) -> None:
    process = sleeping("s1")
    assert program("list", "--json").document["sessions"][0]["owner_pid"] == process.pid
    ran = program(*program.run("--session", "s1"), "--json")
    assert (ran.code, ran.document["code"]) == (5, "session_busy")
    assert str(process.pid) in ran.err
    parked = program("resume", "s1", "--script", program.folder / "script.json", "--json")
    assert (parked.code, next(one["code"] for one in parked.document["reasons"])) == (5, "session_busy")
    assert any(one["command"].startswith("safepoint cancel s1") for one in parked.document["commands"])


def test_a_second_signal_ends_the_process_at_once(
    program: Program, sleeping: Callable[..., subprocess.Popen[str]]
) -> None:
    process = sleeping("s1")
    process.send_signal(signal.SIGSTOP)  # so that both signals are there when it goes on
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    assert ended(process).code in (-signal.SIGINT, -signal.SIGTERM)
    assert program("list", "--json").document["sessions"][0]["state"] == "interrupted"


def test_what_a_killed_run_left_running_parks_with_its_pids(
    program: Program, sleeping: Callable[..., subprocess.Popen[str]]
) -> None:
    process = sleeping("s1")
    process.kill()
    process.communicate()
    ran = program("resume", "s1", "--script", program.folder / "script.json", "--json")
    codes = [one["code"] for one in ran.document["reasons"]]
    assert (ran.code, codes) == (3, ["dangling_tool_state", "effect_may_be_running"])
    (operation,) = ran.document["operations"]
    assert operation["over"] == "running"
    (kill,) = [one["command"] for one in ran.document["commands"] if one["command"].startswith("kill ")]
    assert int(kill.split()[1]) == operation["processes"][0]["pid"]
    subprocess.run(kill.split(), check=True)
    deadline = time.monotonic() + 30
    while program("plan", "s1", "--json").document["operations"][0]["over"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    codes = [one["code"] for one in program("plan", "s1", "--json").document["reasons"]]
    assert codes == ["dangling_tool_state"]


def test_a_job_that_goes_on_is_named_and_once_it_has_ended_the_run_continues(program: Program) -> None:
    """r3-122: the park names the process and the exact commands; its end is recorded once."""
    job = {"tool": "run_shell", "args": {"command": "sleep 300 & echo started"}}
    program.script({"text": "I start it.", "calls": [job]}, {"text": "Done."})
    program.killed_at("P6", *program.run("--session", "s1"))
    document = program("plan", "s1", "--json").document
    assert "background_operation_pending" in [one["code"] for one in document["reasons"]]
    (operation,) = document["operations"]
    assert (operation["verdict"], operation["over"]) == ("completed", "running")
    assert "sleep" in [process["name"] for process in operation["processes"]]
    (kill,) = [one["command"] for one in document["commands"] if one["command"].startswith("kill ")]
    subprocess.run(kill.split(), check=True)
    deadline = time.monotonic() + 30
    while program("plan", "s1").code != 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert program("resume", "s1", "--script", program.folder / "script.json").out == "Done.\n"
    source = program("show", "s1", "--json").document["runs"][0]["run_id"]
    facts = program("show", "s1", "--run", source, "--json").document["run"]["facts"]
    assert [fact["type"] for fact in facts].count("background.settled.v1") == 1
