"""Background jobs of supervised operations, found again by what their supervisor wrote down.

SPEC sections 10 and 15.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...domain.events.outside import JobKind, JobStatus
from ...ports.background_work import (
    MAIN_PROCESS,
    BackgroundWork,
    JobHandle,
    JobNotSeen,
    JobObservation,
    JobRunning,
    JobSettled,
    JobUnknown,
)
from ...ports.supervised import OperationStatus, Overness, Progress
from ...ports.supervisor import Supervisor
from .ending import end_process


class SupervisedJobs(BackgroundWork):
    """Shell jobs of this host; other kinds of jobs are not seen by it.

    Args:
        supervisor: holds the lock of an operation until its last process has ended, and keeps its status.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def observe(self, handles: Sequence[JobHandle]) -> Sequence[JobObservation]:
        """Look at the lock of each operation, and where that is free at the status."""
        return [self._look(handle) for handle in handles]

    def end(self, handle: JobHandle, timeout_seconds: float) -> JobObservation:
        """End the supervisor, which ends all that it holds the lock for; where it is gone, end what is left."""
        seen = self._look(handle)
        deadline = time.monotonic() + timeout_seconds
        while isinstance(seen, JobRunning) and seen.processes and time.monotonic() < deadline:
            first = seen.processes[0]
            left = deadline - time.monotonic()
            end_process(
                first.pid,
                first.process_start_time,
                is_over=lambda: not isinstance(self._look(handle), JobRunning),
                grace_seconds=left,  # a supervisor that were killed could end nothing
                timeout_seconds=left,
            )
            seen = self._look(handle)
        return seen

    def _look(self, handle: JobHandle) -> JobObservation:
        operation_id = handle.operation_id
        if handle.kind is not JobKind.SHELL or operation_id is None:
            return JobNotSeen(f"a job of kind {handle.kind.value} cannot be seen from here")
        overness = self._supervisor.probe_over(operation_id)
        if overness is Overness.RUNNING:
            return JobRunning(self._supervisor.who_holds(operation_id))
        status = self._supervisor.status(operation_id)
        if overness is Overness.OVER:
            return _settled(status, is_main=handle.handle.get(MAIN_PROCESS) is True)
        return JobUnknown() if status is None else JobNotSeen("what is left of its lock proves nothing")


def _settled(status: OperationStatus | None, *, is_main: bool) -> JobSettled:
    """How it ended; the exit of a main process says nothing of what it left behind."""
    if not is_main or status is None or status.progress is not Progress.EXITED:
        return JobSettled(JobStatus.UNKNOWN)
    ended = JobStatus.COMPLETED if status.exit_code == 0 else JobStatus.FAILED
    return JobSettled(ended, status.exit_code, status.signal)
