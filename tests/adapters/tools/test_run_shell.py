"""The tool `run_shell`, by a real supervisor."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from safepoint.adapters.process.background_work import SupervisedJobs
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.adapters.tools.builtin.run_shell import OUTPUT_BYTES_MAX, ShellTool, shell_environment
from safepoint.domain import canonical
from safepoint.domain.events.event import Json
from safepoint.domain.events.outside import JobKind, JobStatus
from safepoint.domain.events.tool import Effect, Life, RecoveryMode
from safepoint.domain.identifiers import HandleId
from safepoint.ports.background_work import JobHandle, JobRunning, JobSettled
from safepoint.ports.supervised import Overness
from safepoint.ports.supervisor import SupervisedSlot
from safepoint.ports.tool_catalog import BoundCall, Settled, SupervisedCall, ToolContext

Run: TypeAlias = Callable[..., Settled]


def bind(**arguments: Json) -> tuple[BoundCall, SupervisedCall]:
    bound = ShellTool().bind(arguments)
    assert isinstance(bound, BoundCall), bound
    assert isinstance(bound.implementation, SupervisedCall)
    return bound, bound.implementation


@pytest.fixture
def supervisor(tmp_path: Path) -> ProcessSupervisor:
    return ProcessSupervisor(tmp_path / "store.locks")


@pytest.fixture
def start(supervisor: ProcessSupervisor, context: ToolContext) -> Callable[[dict[str, Json]], SupervisedSlot]:
    def start_command(arguments: dict[str, Json]) -> SupervisedSlot:
        slot = supervisor.prepare(context.operation_id)
        slot.start(bind(**arguments)[1].work(arguments, context))
        return slot

    return start_command


@pytest.fixture
def run(start: Callable[[dict[str, Json]], SupervisedSlot], context: ToolContext) -> Run:
    def run_command(command: str) -> Settled:
        ended = start({"command": command}).wait(60.0)
        assert ended is not None
        return bind(command=command)[1].settle(ended, context)

    return run_command


def result(settled: Settled) -> dict[str, Any]:
    assert isinstance(settled.result.result, dict)
    return settled.result.result


def test_a_command_promises_to_be_found_again_and_runs_supervised() -> None:
    bound, implementation = bind(command="true")
    assert (bound.contract.mode, bound.life) == (RecoveryMode.REATTACH, Life.SUPERVISED)
    assert (bound.timeout_seconds, bound.resource_key, bound.writes_workspace) == (120, None, True)
    assert implementation.detach is None
    assert bind(command="true", timeout_seconds=7)[0].timeout_seconds == 7


def test_exit_code_and_outputs_are_the_result(run: Run) -> None:
    settled = run("echo out; echo err >&2; exit 3")
    assert result(settled) == {
        "exit_code": 3,
        "signal": None,
        "stdout": "out\n",
        "stdout_bytes": 4,
        "stderr": "err\n",
        "stderr_bytes": 4,
        "left_running": [],
    }
    assert (settled.result.effect, settled.result.is_error, settled.left_running) == (Effect.DONE, False, None)


def test_a_command_that_was_killed_has_a_signal_and_no_exit_code(run: Run) -> None:
    """Field report r3-124."""
    assert (result(run("kill -9 $$"))["exit_code"], result(run("kill -9 $$"))["signal"]) == (None, 9)


def test_it_runs_in_the_workspace(run: Run, workspace: Path) -> None:
    assert result(run("pwd -P"))["stdout"] == f"{workspace}\n"


def test_a_long_output_is_cut_and_its_length_is_told(run: Run) -> None:
    long = result(run("head -c 1000000 /dev/zero | tr '\\0' x"))
    assert long["stdout_bytes"] == 1_000_000
    assert long["stdout"] == "x" * (OUTPUT_BYTES_MAX - 2)


def test_the_worst_output_still_fits_a_result(run: Run) -> None:
    settled = run("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2")
    assert settled.result.code is None
    assert len(canonical.encode(settled.result.result)) < 2 * OUTPUT_BYTES_MAX + 500


def test_output_that_is_no_text_is_shown_as_far_as_it_is(run: Run) -> None:
    assert result(run("printf 'a\\377b'"))["stdout"] == "a\ufffdb"


def test_what_goes_on_after_the_command_is_told_and_can_be_found_again(
    run: Run, supervisor: ProcessSupervisor, context: ToolContext
) -> None:
    settled = run("sleep 300 & echo started")
    assert settled.left_running is not None
    assert not settled.left_running.detached
    assert [process["name"] for process in result(settled)["left_running"]] == ["sleep"]
    job = JobHandle(HandleId("h"), JobKind.SHELL, context.operation_id, settled.left_running.handle)
    jobs = SupervisedJobs(supervisor)
    assert isinstance(jobs.observe([job])[0], JobRunning)
    assert jobs.end(job, 30.0) == JobSettled(JobStatus.UNKNOWN)


def test_a_detached_command_is_the_job_itself(
    start: Callable[[dict[str, Json]], SupervisedSlot], supervisor: ProcessSupervisor, context: ToolContext
) -> None:
    """Its exit code is the job's, also for whoever looks after the owner has died."""
    arguments: dict[str, Json] = {"command": "while [ ! -e stop ]; do sleep 0.05; done; exit 5", "detach": True}
    slot = start(arguments)
    implementation = bind(**arguments)[1]
    assert implementation.detach is not None
    settled = implementation.detach(slot.living(), context)
    assert settled.left_running is not None
    assert settled.left_running.detached
    assert result(settled)["detached"] is True
    assert result(settled)["left_running"][0]["name"] == "sh"
    job = JobHandle(HandleId("h"), JobKind.SHELL, context.operation_id, settled.left_running.handle)
    jobs = SupervisedJobs(supervisor)
    assert isinstance(jobs.observe([job])[0], JobRunning)
    (context.workspace / "stop").touch()
    while supervisor.probe_over(context.operation_id) is not Overness.OVER:
        time.sleep(0.02)
    assert jobs.observe([job]) == [JobSettled(JobStatus.FAILED, 5, None)]


def test_commands_see_neither_provider_keys_nor_our_own_settings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: what a command prints is stored."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("SAFEPOINT_FAILPOINT", "P4")
    monkeypatch.setenv("MY_SETTING", "kept")
    printed = result(run("env"))["stdout"]
    assert "MY_SETTING=kept" in printed
    assert "sk-planted" not in printed
    assert "SAFEPOINT_" not in printed


def test_the_environment_is_taken_as_it_is_but_for_what_is_hidden() -> None:
    environment = {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "SAFEPOINT_STORE": "s"}
    assert shell_environment(environment) == {"PATH": "/bin"}


def test_the_description_says_what_detach_does() -> None:
    assert "With detach" in ShellTool().spec.description
    assert "\n    " not in ShellTool().spec.description
