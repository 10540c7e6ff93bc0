"""Background jobs that a test moves along."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.events.outside import JobStatus
from ...domain.identifiers import HandleId
from ...ports.background_work import BackgroundWork, JobHandle, JobObservation, JobRunning, JobSettled, JobUnknown
from ...ports.supervised import ProcessInfo


class MemoryJobs(BackgroundWork):
    """Jobs by their handle; one that was never started is unknown."""

    def __init__(self) -> None:
        self._jobs: dict[HandleId, JobObservation] = {}

    def start(self, handle: JobHandle, *processes: ProcessInfo) -> None:
        """Let a job run."""
        self._jobs[handle.handle_id] = JobRunning(processes)

    def put(self, handle: JobHandle, seen: JobObservation) -> None:
        """Let a job be seen as this from now on."""
        self._jobs[handle.handle_id] = seen

    def observe(self, handles: Sequence[JobHandle]) -> Sequence[JobObservation]:
        """Say how each stands."""
        return [self._jobs.get(handle.handle_id, JobUnknown()) for handle in handles]

    def end(self, handle: JobHandle, timeout_seconds: float) -> JobObservation:
        """End a job that runs, as by SIGTERM."""
        if isinstance(self._jobs.get(handle.handle_id), JobRunning):
            self._jobs[handle.handle_id] = JobSettled(JobStatus.FAILED, None, 15)
        return self._jobs.get(handle.handle_id, JobUnknown())
