"""Every implementation of `BackgroundWork` keeps its contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.process.background_work import SupervisedJobs
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.domain.events.outside import JobKind, JobStatus
from safepoint.domain.identifiers import HandleId, OperationId
from safepoint.ports.background_work import MAIN_PROCESS, JobHandle, JobNotSeen, JobRunning, JobSettled
from safepoint.ports.contract_kit.background_work import BackgroundWorkContract
from safepoint.ports.supervised import Command, Overness, ProcessInfo


def handle(name: str, *, is_main: bool = True, kind: JobKind = JobKind.SHELL) -> JobHandle:
    return JobHandle(HandleId(name), kind, OperationId(f"operation-{name}"), {MAIN_PROCESS: is_main})


class TestMemoryJobs(BackgroundWorkContract):
    @pytest.fixture
    def jobs(self) -> MemoryJobs:
        return MemoryJobs()

    @pytest.fixture
    def running(self, jobs: MemoryJobs) -> JobHandle:
        jobs.start(handle("running"), ProcessInfo(1, 1, "sleep"))
        return handle("running")

    @pytest.fixture
    def completed(self, jobs: MemoryJobs) -> JobHandle:
        jobs.put(handle("completed"), JobSettled(JobStatus.COMPLETED, 0, None))
        return handle("completed")

    @pytest.fixture
    def killed(self, jobs: MemoryJobs) -> JobHandle:
        jobs.put(handle("killed"), JobSettled(JobStatus.FAILED, None, 9))
        return handle("killed")

    @pytest.fixture
    def never_started(self) -> JobHandle:
        return handle("never started")


class TestSupervisedJobs(BackgroundWorkContract):
    """Field report r3-124: a job that was killed is never shown as one that ended well."""

    @pytest.fixture
    def supervisor(self, tmp_path: Path) -> ProcessSupervisor:
        return ProcessSupervisor(tmp_path / "store.locks")

    @pytest.fixture
    def jobs(self, supervisor: ProcessSupervisor) -> SupervisedJobs:
        return SupervisedJobs(supervisor)

    @pytest.fixture
    def running(self, supervisor: ProcessSupervisor) -> JobHandle:
        slot = supervisor.prepare(OperationId("operation-running"))
        slot.start(Command(("sleep", "300")))
        return handle("running")

    @pytest.fixture
    def completed(self, supervisor: ProcessSupervisor) -> JobHandle:
        return self._ended(supervisor, "completed", "exit 0")

    @pytest.fixture
    def killed(self, supervisor: ProcessSupervisor) -> JobHandle:
        return self._ended(supervisor, "killed", "kill -9 $$")

    @pytest.fixture
    def never_started(self) -> JobHandle:
        return handle("never started")

    def test_what_a_main_process_left_behind_ends_without_a_known_status(
        self, supervisor: ProcessSupervisor, jobs: SupervisedJobs
    ) -> None:
        ended = self._ended(supervisor, "left behind", "exit 0")
        left_behind = JobHandle(ended.handle_id, ended.kind, ended.operation_id, {MAIN_PROCESS: False})
        assert jobs.observe([left_behind]) == [JobSettled(JobStatus.UNKNOWN)]

    def test_a_job_of_another_kind_is_not_seen(self, jobs: SupervisedJobs) -> None:
        (seen,) = jobs.observe([handle("elsewhere", kind=JobKind.REMOTE)])
        assert isinstance(seen, JobNotSeen)

    def test_a_job_whose_lock_file_has_gone_is_not_seen_as_ended(
        self, supervisor: ProcessSupervisor, jobs: SupervisedJobs, tmp_path: Path
    ) -> None:
        """A missing lock file is could-not-look, never an end."""
        ended = self._ended(supervisor, "lock has gone", "exit 0")
        for lock in (tmp_path / "store.locks").glob("*.lock"):
            lock.unlink()
        (seen,) = jobs.observe([ended])
        assert isinstance(seen, JobNotSeen)

    def test_a_job_that_ignores_the_request_is_ended_by_force(
        self, supervisor: ProcessSupervisor, jobs: SupervisedJobs
    ) -> None:
        slot = supervisor.prepare(OperationId("operation-stubborn"))
        slot.start(Command(("sh", "-c", "trap '' TERM; while :; do sleep 1; done")))
        assert isinstance(jobs.observe([handle("stubborn")])[0], JobRunning)
        assert jobs.end(handle("stubborn"), 30.0) == JobSettled(JobStatus.FAILED, None, 9)

    @staticmethod
    def _ended(supervisor: ProcessSupervisor, name: str, script: str) -> JobHandle:
        ended = handle(name)
        assert ended.operation_id is not None
        slot = supervisor.prepare(ended.operation_id)
        slot.start(Command(("sh", "-c", script)))
        assert slot.wait(30.0) is not None
        assert slot.end() is Overness.OVER
        return ended
