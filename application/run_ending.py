"""Brings a run to its terminal event: what was left running is awaited, ended and recorded first. SPEC section 7."""

from __future__ import annotations

import contextlib
from functools import partial

import anyio

from ..domain.errors import SafepointError, StoreError, WriteRefused
from ..domain.events.outside import BackgroundSettled, BackgroundStarted
from ..domain.events.run import CancelRequested, RunError, RunStatus
from ..domain.reasons import FailureClass, WriteRefusal
from ..ports.background_work import BackgroundWork, JobHandle, JobObservation, JobSettled
from ..ports.supervisor import Supervisor
from .in_thread import in_thread
from .over import attached_jobs
from .run_checkpoints import NoCheckpoints
from .run_recorder import RunRecorder
from .stopping import Stopping

JOB_WAIT_SECONDS = 10.0
LOOK_EVERY_SECONDS = 0.1
_NOT_OURS_ANY_MORE = frozenset({WriteRefusal.RUN_SEALED, WriteRefusal.RUN_CLAIMED, WriteRefusal.OWNER_FENCED})


def may_be_ended(error: Exception) -> bool:
    """Whether whoever drives a run writes its terminal event after this; where not, repair closes its record."""
    if isinstance(error, WriteRefused):
        return error.code not in _NOT_OURS_ANY_MORE
    return not isinstance(error, StoreError)


class RunEnding:
    """Ends one run, once.

    Args:
        jobs: finds work that tools left running.
        checkpoints: binds the run to the content of its workspace.
        job_wait_seconds: how long each attached job is waited for before it is ended, and how long its end may take.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        jobs: BackgroundWork,
        supervisor: Supervisor,
        stopping: Stopping,
        checkpoints: NoCheckpoints,
        *,
        job_wait_seconds: float = JOB_WAIT_SECONDS,
    ) -> None:
        self._recorder = recorder
        self._jobs = jobs
        self._supervisor = supervisor
        self._stopping = stopping
        self._checkpoints = checkpoints
        self._job_wait_seconds = job_wait_seconds

    async def done(self) -> tuple[RunStatus, FailureClass | None]:
        """The model has nothing more to call: completed, unless a job would not end or the run was stopped meanwhile.

        Raises (all methods):
            StoreError, WriteRefused: the terminal event could not be written; repair will write one.
        """
        settled = await self._settle_jobs()
        if self._stopping.is_set():
            return await self.cancelled()
        if not settled:
            return await self._end(RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
        return await self._end(RunStatus.COMPLETED, None)

    async def failed(self, failure: FailureClass, error: BaseException | None = None) -> tuple[RunStatus, FailureClass]:
        """Something went wrong, named by class and code only. R15."""
        if error is not None:
            fact = RunError(**self._recorder.spine(), error_class=type(error).__name__, code=failure)
            await self._recorder.append(fact)
        await self._settle_jobs()
        await self._end(RunStatus.FAILED, failure)
        return RunStatus.FAILED, failure

    async def cancelled(self) -> tuple[RunStatus, None]:
        """A person or the host stopped it."""
        await self._settle_jobs()
        await self._end(RunStatus.CANCELLED, None)
        return RunStatus.CANCELLED, None

    async def _end(self, status: RunStatus, failure: FailureClass | None) -> tuple[RunStatus, FailureClass | None]:
        stopped_by = self._stopping.by if self._stopping.is_set() else None
        if stopped_by is not None and (await self._recorder.run()).cancel_requested is None:
            await self._recorder.append(CancelRequested(**self._recorder.spine(), by=stopped_by))
        await self._checkpoints.when_settled()
        await self._recorder.end(status, failure, stopped_by=stopped_by)
        return status, failure

    async def _settle_jobs(self) -> bool:
        """Await and record the end of work that is not detached; False when some of it could not be seen to end."""
        for job in attached_jobs(await self._recorder.run()):
            seen = await self._settled(job)
            if isinstance(seen, JobSettled):
                await self._record(job, seen)
        return not attached_jobs(await self._recorder.run())

    async def _settled(self, job: BackgroundStarted) -> JobObservation | None:
        handle = JobHandle(job.handle_id, job.kind, job.operation_id, job.handle)
        scope = self._stopping.at_once(self._job_wait_seconds)
        try:
            with scope:
                while True:
                    (seen,) = await in_thread(partial(self._jobs.observe, [handle]))
                    if isinstance(seen, JobSettled):
                        return seen
                    await anyio.sleep(LOOK_EVERY_SECONDS)
            return await in_thread(partial(self._jobs.end, handle, self._job_wait_seconds))
        except SafepointError:
            return None  # could not look: it stays open, which the terminal event then says
        finally:
            self._stopping.done(scope)

    async def _record(self, job: BackgroundStarted, seen: JobSettled) -> None:
        await self._recorder.append(
            BackgroundSettled(
                **self._recorder.spine(),
                handle_id=job.handle_id,
                status=seen.status,
                exit_code=seen.exit_code,
                signal=seen.signal,
            )
        )
        if job.operation_id is not None:
            with contextlib.suppress(Exception):  # its end is durable: the lock file is only litter now
                await in_thread(partial(self._supervisor.forget, job.operation_id))
