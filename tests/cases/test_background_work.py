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

from ..adapters.cli.program import Program
from ..application.supervised_tools import runs
from ..application.wiring import SESSION
from ..crash.harness.program import state_of, wait_for
from ..crash.harness.record import read_record
from .programs import interrupted, resume
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
