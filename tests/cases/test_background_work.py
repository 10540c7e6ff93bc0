"""Field reports: work goes on after its tool has returned, or its owner has died. SPEC sections 10, 13 and 15, F18."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls
from safepoint.adapters.memory.supervisor import Run
from safepoint.adapters.memory.tool_catalog import MemoryCatalog
from safepoint.domain.events.outside import BackgroundSettled, BackgroundStarted, JobStatus
from safepoint.domain.events.run import RunError
from safepoint.ports.background_work import JobHandle, JobSettled

from ..adapters.cli.program import PAY, Program
from ..application.supervised_tools import runs
from ..application.wiring import SESSION
from ..crash.harness.program import state_of, wait_for
from ..crash.harness.record import read_record
from .programs import DONE, codes_in, interrupted, offered, resume
from .resuming import ResumingProcess, SharedWorld

PIDS = "pids"


def shell(command: str) -> dict[str, Any]:
    return {"tool": "run_shell", "args": {"command": command}}


@pytest.fixture
def left_behind(program: Program) -> Iterator[Program]:
    """A run whose shell command returned, and left a process of its own behind; then it was killed."""
    interrupted(program, "P7", shell(f"sleep 60 & echo $! > {PIDS}; echo started"))
    yield program
    end(program.workspace / PIDS)


def end(pids: Path) -> None:
    pid = int(pids.read_text())
    if state_of(pid) not in (None, "Z"):
        os.kill(pid, signal.SIGKILL)
    wait_for("it does not end", lambda: state_of(pid) in (None, "Z"))


def test_r3_122_a_command_that_still_runs_is_named_with_the_commands_that_help(left_behind: Program) -> None:
    """O(A)=background handle; X; the process lives on; resume."""
    pid = int((left_behind.workspace / PIDS).read_text())
    ran = left_behind(*resume(left_behind), "--json")
    assert (ran.code, codes_in(ran)) == (3, ["effect_may_be_running", "background_operation_pending"])
    (operation,) = ran.document["operations"]
    assert (operation["over"], {"pid": pid, "name": "sleep"} in operation["processes"]) == ("running", True)
    supervisor = operation["processes"][0]["pid"]
    assert [command for command in offered(ran) if command.startswith("kill ")] == [f"kill {supervisor}"]
    assert [command for command in offered(ran) if command.startswith("safepoint resume s1")]
    shown = left_behind(*resume(left_behind)).out
    assert f"sleep (pid {pid})" in shown


def test_r3_122_when_it_has_ended_the_run_goes_on_and_its_end_is_recorded_once(left_behind: Program) -> None:
    assert left_behind(*resume(left_behind)).code == 3
    end(left_behind.workspace / PIDS)
    wait_for("its supervisor holds on", lambda: left_behind("plan", "s1").code == 0)
    assert left_behind(*resume(left_behind)).out == "All done.\n"
    record = read_record(left_behind.store)
    (settled,) = record.of_session("s1", "background.settled.v1")
    assert settled["exit_code"] is None, "how what was left behind ended was never written down, so it is not guessed"
    assert settled["status"] == "unknown"
    assert len(record.of_session("s1", "tool.dispatched.v1")) == 1


def test_r3_126_a_live_job_and_an_unsettled_call_are_both_told(program: Program) -> None:
    """O(A)='still running, handle h'; step{B}; D(B); SIGKILL; resume."""
    leaves = shell(f"sleep 60 & echo $! > {PIDS}; echo started")
    program.script({"text": "I start it.", "calls": [leaves]}, {"text": "I pay.", "calls": [PAY]}, DONE)
    program.killed_at("tool.record_effect.after_effect", *program.run("--session", "s1"))
    try:
        ran = program("plan", "s1", "--json")
        assert codes_in(ran) == ["dangling_tool_state", "effect_may_be_running", "background_operation_pending"]
        verdicts = [(one["tool"], one["verdict"], one["over"]) for one in ran.document["operations"]]
        assert verdicts == [("run_shell", "completed", "running"), ("record_effect", "indeterminate", "over")]
    finally:
        end(program.workspace / PIDS)
    wait_for("its supervisor holds on", lambda: len(codes_in(program("plan", "s1", "--json"))) == 1)
    assert codes_in(program(*resume(program), "--json")) == ["dangling_tool_state"]
    assert (program.effects, program.requests) == (["paid"], 2)


def test_r3_127_a_job_that_died_with_the_host_is_noted_once_and_wakes_nobody(left_behind: Program) -> None:
    """The host is started five times and looks; then the user acts."""
    end(left_behind.workspace / PIDS)
    wait_for("its supervisor holds on", lambda: left_behind("plan", "s1").code == 0)
    before = read_record(left_behind.store)
    for _ in range(5):
        for look in (("list",), ("status",), ("show", "s1"), ("plan", "s1")):
            assert left_behind(*look).code == 0
    assert read_record(left_behind.store) == before
    assert left_behind.requests == 1
    assert left_behind(*resume(left_behind)).code == 0
    assert left_behind.requests == 2
    assert len(read_record(left_behind.store).of_session("s1", "background.settled.v1")) == 1


def test_r3_127_five_starts_that_repair_write_one_fact_and_ask_no_model() -> None:
    def serve(run: Run) -> int:
        run.leave_running("server")
        return 0

    world, tools = SharedWorld(), MemoryCatalog([runs("serve")])
    first = ResumingProcess(world, programs={"serve": serve})
    model = PlannedModel([calls(("serve", {}))])
    run_id = first.is_interrupted("go", model, tools, at=RunError.topic)
    (job,) = first.of(run_id, BackgroundStarted)
    world.jobs.put(JobHandle(job.handle_id, job.kind, job.operation_id, job.handle), JobSettled(JobStatus.UNKNOWN))
    facts = 0
    for start in range(5):
        process = ResumingProcess(world)
        owned = process.ownership.own(SESSION)
        process.repair(owned)
        process.settle_jobs(owned)
        process.ownership.release(owned)
        if start == 0:
            facts = len(process.events(run_id)) + len(process.session_events())
        assert len(process.events(run_id)) + len(process.session_events()) == facts
    assert len(process.of(run_id, BackgroundSettled)) == 1
    assert len(model.asked) == 2
