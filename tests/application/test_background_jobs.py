"""What a tool leaves running: recorded with T2, awaited and ended with its run, or left alone. SPEC section 7, 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.supervisor import Run
from safepoint.adapters.memory.tool_catalog import MemoryCatalog, MemoryTool
from safepoint.application.live_runs import LiveRun
from safepoint.application.run_agent import RunLimits
from safepoint.application.run_turn import TurnResult
from safepoint.domain.commands import EndRun
from safepoint.domain.errors import StoreUnavailable, WriteRefused
from safepoint.domain.events.outside import BackgroundSettled, BackgroundStarted, JobStatus
from safepoint.domain.events.run import RunEnded, RunStatus
from safepoint.domain.events.tool import Effect, ToolResponded
from safepoint.domain.reasons import FailureClass, WriteRefusal
from safepoint.ports.background_work import JobHandle, JobNotSeen, JobObservation, JobSettled, JobUnknown
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.supervised import Overness

from .supervised_tools import runs
from .wiring import SESSION, Process, World, beside, check_sound, go, until

SOON = 0.02


def leaves_a_server(run: Run) -> int:
    run.stdout += b"listening"
    run.leave_running("server")
    return 0


def handle_of(job: BackgroundStarted) -> JobHandle:
    return JobHandle(job.handle_id, job.kind, job.operation_id, job.handle)


class Jobs(MemoryJobs):
    """Jobs that end when a test says so, or when they are told to."""

    def __init__(self, *, ends: JobObservation | None = None) -> None:
        super().__init__()
        self.told_to_end: list[JobHandle] = []
        self.looked_at: list[JobHandle] = []
        self._ends = ends

    def observe(self, handles: Sequence[JobHandle]) -> Sequence[JobObservation]:
        self.looked_at.extend(handles)
        return super().observe(handles)

    def end(self, handle: JobHandle, timeout_seconds: float) -> JobObservation:
        self.told_to_end.append(handle)
        return JobSettled(JobStatus.ENDED, None, 15) if self._ends is None else self._ends


def process_with(
    jobs: MemoryJobs, job_wait_seconds: float = SOON, at_failpoint: Callable[[str], None] = lambda point: None
) -> Process:
    world = World(jobs=jobs)
    limits = RunLimits(job_wait_seconds=job_wait_seconds)
    return Process(world, limits=limits, programs={"serve": leaves_a_server}, at_failpoint=at_failpoint)


def turn(process: Process, tool: MemoryTool) -> TurnResult:
    model = PlannedModel([calls((tool.name, {})), says("done")])
    return go(lambda: process.turn("go", model, MemoryCatalog([tool])))


def test_what_a_call_leaves_running_is_recorded_in_one_commit_with_its_t2() -> None:
    process = process_with(Jobs())
    result = turn(process, runs("serve"))
    kinds = [[event.event.topic for event in commit.events] for commit in process.events_store.commits]
    assert [ToolResponded.topic, BackgroundStarted.topic] in kinds
    (job,), (response,) = process.of(result.run_id, BackgroundStarted), process.responses(result.run_id)
    assert (job.operation_id, job.detached) == (response.operation_id, False)
    assert response.effect is Effect.DONE
    check_sound(process, result.run_id)


def test_an_attached_job_is_awaited_within_a_bound_then_ended_and_its_end_recorded_before_the_run_completes() -> None:
    jobs = Jobs()
    process = process_with(jobs)
    result = turn(process, runs("serve"))
    assert result.outcome.status is RunStatus.COMPLETED
    assert len(jobs.told_to_end) == 1
    (settled,) = process.of(result.run_id, BackgroundSettled)
    assert (settled.status, settled.signal) == (JobStatus.ENDED, 15)
    assert process.topics(result.run_id)[-2:] == ["background.settled", "run.ended"]


def test_a_job_that_ends_by_itself_in_time_is_not_ended_by_us() -> None:
    jobs = Jobs()
    process = process_with(jobs, job_wait_seconds=30.0)

    async def work() -> TurnResult:
        async def ending() -> None:
            await until(lambda: jobs.looked_at)
            jobs.put(jobs.looked_at[0], JobSettled(JobStatus.COMPLETED, 0))

        model = PlannedModel([calls(("serve", {})), says("done")])
        return await beside(ending, process.turn("go", model, MemoryCatalog([runs("serve")])))

    result = go(work)
    assert jobs.told_to_end == []
    (settled,) = process.of(result.run_id, BackgroundSettled)
    assert (settled.status, settled.exit_code) == (JobStatus.COMPLETED, 0)
    check_sound(process, result.run_id)


@pytest.mark.parametrize("seen", [JobUnknown(), JobNotSeen("no such host")])
def test_a_run_whose_job_was_not_seen_to_end_is_not_completed(seen: JobObservation) -> None:
    process = process_with(Jobs(ends=seen))
    result = turn(process, runs("serve"))
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    assert process.of(result.run_id, BackgroundSettled) == []
    (job,) = process.of(result.run_id, BackgroundStarted)
    assert process.not_over(result.run_id) == (job.operation_id,)
    check_sound(process, result.run_id)


def test_looking_for_a_job_may_fail_and_is_then_no_end_of_it() -> None:
    class Unreachable(MemoryJobs):
        def observe(self, handles: Sequence[JobHandle]) -> Sequence[JobObservation]:
            raise StoreUnavailable("could not look")

    process = process_with(Unreachable())
    result = turn(process, runs("serve"))
    assert result.outcome.failure is FailureClass.TOOL_NOT_OVER
    check_sound(process, result.run_id)


def test_a_detached_job_is_left_alone_and_does_not_hold_up_the_end() -> None:
    jobs = Jobs()
    process = process_with(jobs)

    def serves(run: Run) -> None:
        run.asked_to_end.wait(60)

    process.supervisor.programs["serve"] = serves
    result = turn(process, runs("serve", detached=True))
    assert result.outcome.status is RunStatus.COMPLETED
    (job,) = process.of(result.run_id, BackgroundStarted)
    assert job.detached
    assert jobs.looked_at == jobs.told_to_end == []
    assert job.operation_id is not None
    assert process.supervisor.probe_over(job.operation_id) is Overness.RUNNING
    check_sound(process, result.run_id)
    (operation,) = process.world.supervisor._operations.values()
    assert operation.run is not None
    operation.run.asked_to_end.set()


def test_completed_is_refused_while_an_attached_job_is_open() -> None:
    refusals: list[WriteRefusal] = []

    def at(point: str) -> None:
        live = process.live_runs.get(SESSION)
        if point != Failpoint.BEFORE_TERMINAL or live is None:
            return
        owned = live.recorder.owned
        guard = (owned.session_id, owned.incarnation_id, owned.epoch)
        ended = RunEnded(
            **live.recorder.spine(),
            status=RunStatus.COMPLETED,
            incarnation_id=owned.incarnation_id,
            epoch=owned.epoch,
        )
        with pytest.raises(WriteRefused) as refused:
            process.ledger.execute(EndRun(*guard, live.recorder.run_id, ended))
        refusals.append(refused.value.code)

    process = process_with(Jobs(ends=JobUnknown()), at_failpoint=at)
    result = turn(process, runs("serve"))
    assert refusals == [WriteRefusal.OPERATION_OPEN]
    assert [event.status for event in process.of(result.run_id, RunEnded)] == [RunStatus.FAILED]


def test_a_stop_while_jobs_are_awaited_ends_them_at_once_and_the_run_as_cancelled() -> None:
    jobs = Jobs()
    process = process_with(jobs, job_wait_seconds=50.0)
    lives: list[LiveRun] = []

    async def work() -> TurnResult:
        async def stopping() -> None:
            await until(lambda: jobs.looked_at)
            await lives[0].cancel("ada")

        model = PlannedModel([calls(("serve", {})), says("done")])
        turn = process.turn("go", model, MemoryCatalog([runs("serve")]), started=lives.append)
        return await beside(stopping, turn)

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    assert len(jobs.told_to_end) == 1
    assert len(process.of(result.run_id, BackgroundSettled)) == 1
    check_sound(process, result.run_id)


def test_the_jobs_of_a_run_that_fails_are_ended_too() -> None:
    jobs = Jobs()
    process = process_with(jobs)
    model = PlannedModel([calls(("serve", {}))])
    result = go(lambda: process.turn("go", model, MemoryCatalog([runs("serve")])))
    assert result.outcome.failure is FailureClass.PROVIDER_FAILED
    assert len(process.of(result.run_id, BackgroundSettled)) == 1
    check_sound(process, result.run_id)


def test_the_lock_file_of_a_job_goes_when_its_end_is_durable() -> None:
    world = World()

    class Ends(Jobs):
        def end(self, handle: JobHandle, timeout_seconds: float) -> JobObservation:
            (operation,) = world.supervisor._operations.values()
            for process in list(operation.processes):
                operation.remove(process)
            return super().end(handle, timeout_seconds)

    world.jobs = Ends()
    process = Process(world, limits=RunLimits(job_wait_seconds=SOON), programs={"serve": leaves_a_server})
    result = turn(process, runs("serve"))
    assert result.outcome.status is RunStatus.COMPLETED
    assert world.supervisor._operations == {}
