"""Looks at background work of an ended run once more, and records what has settled since. SPEC sections 7 and 13."""

from __future__ import annotations

from ..domain.commands import AppendLate
from ..domain.errors import StoreDamaged
from ..domain.events.outside import BackgroundSettled, BackgroundStarted, JobStatus
from ..domain.operation.state import operation_by_id
from ..domain.run.state import Run
from ..ports.background_work import BackgroundWork, JobHandle, JobObservation, JobRunning, JobSettled
from .ledger import CommandLedger
from .over import attached_jobs
from .ownership import Owned
from .spines import Spines


class RecordSettledJobs:
    """Writes `background.settled` for the attached jobs of a session's head run that have ended; once for each."""

    def __init__(self, ledger: CommandLedger, spines: Spines, jobs: BackgroundWork) -> None:
        self._ledger = ledger
        self._spines = spines
        self._jobs = jobs

    def __call__(self, owned: Owned) -> int:
        """Look and record; answers how many were recorded. A damaged session is left alone.

        Raises:
            StoreError, WriteRefused: as the ledger says.
        """
        try:
            head = self._ledger.session(owned.session_id).head
            run = None if head is None else self._ledger.run(head.run_id)
        except StoreDamaged:
            return 0
        if run is None or run.ended is None or run.claimed is not None:
            return 0
        return self._record(owned, run)

    def _record(self, owned: Owned, run: Run) -> int:
        jobs = attached_jobs(run)
        if not jobs:
            return 0
        seen = self._jobs.observe([handle_of(job) for job in jobs])
        ends = [(job, _end_of(run, job, one)) for job, one in zip(jobs, seen, strict=True)]
        settled = [(job, one) for job, one in ends if one is not None]
        for job, one in settled:
            fact = BackgroundSettled(
                **self._spines.run(job.identity),
                handle_id=job.handle_id,
                status=one.status,
                exit_code=one.exit_code,
                signal=one.signal,
            )
            self._ledger.execute(AppendLate(*owned.guard, job.run_id, fact))
        return len(settled)


def _end_of(run: Run, job: BackgroundStarted, seen: JobObservation) -> JobSettled | None:
    """How a job ended; of one that nobody can look at, a person's word is taken that it did (ADR 0016)."""
    if isinstance(seen, JobSettled):
        return seen
    operation = None if job.operation_id is None else operation_by_id(run, job.operation_id)
    declared = operation is not None and operation.declared_over == len(operation.deliveries)
    return JobSettled(JobStatus.UNKNOWN) if declared and not isinstance(seen, JobRunning) else None


def handle_of(job: BackgroundStarted) -> JobHandle:
    """What finds a job again."""
    return JobHandle(job.handle_id, job.kind, job.operation_id, job.handle)
