"""Background work of an ended run: what has settled since is recorded once, and parks no longer. SPEC section 7, 13."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.supervisor import Run
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.memory.tool_catalog import MemoryCatalog
from safepoint.application.agent import Agent
from safepoint.application.record_settled_jobs import handle_of
from safepoint.application.repair_session import RepairKind
from safepoint.application.resume_run import Continued
from safepoint.application.run_agent import RunLimits
from safepoint.application.settlement import SaidBy
from safepoint.domain.errors import StoreError, StoreFull, WriteRefused
from safepoint.domain.events.outside import BackgroundSettled, BackgroundStarted, JobStatus
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import Statement
from safepoint.domain.identifiers import RunId
from safepoint.domain.planning.outcome import Park
from safepoint.domain.reasons import ParkReason, WriteRefusal
from safepoint.ports.background_work import JobHandle, JobNotSeen, JobObservation, JobRunning, JobSettled, JobUnknown

from .resuming import END, Resuming, codes, continuing, written
from .supervised_tools import runs
from .wiring import SESSION, Process, World, check_sound, go

P = ParkReason
SETTLED = JobSettled(JobStatus.FAILED, 3, None)


class Left:
    """A run that was killed while a process that it had started lived on."""

    def __init__(self, *, repaired: bool = False) -> None:
        self.jobs = MemoryJobs()
        self.world = World(jobs=self.jobs)
        self.left: list[tuple[Run, object]] = []
        self.process = self.fresh()
        self.process.events_store.fail_at(END, Failure.UNAVAILABLE)
        with pytest.raises(StoreError):
            go(partial(self.process.turn, "go", [calls(("serve", {})), says("done")], self.catalog))
        self.process.die()
        self.run_id: RunId = self.process.head()
        (self.job,) = self.process.of(self.run_id, BackgroundStarted)
        if repaired:
            process = self.fresh()
            owned = process.ownership.own(SESSION)
            assert process.repair(owned).kind is RepairKind.RUN_CLOSED
            process.ownership.release(owned)

    @property
    def catalog(self) -> MemoryCatalog:
        return MemoryCatalog([runs("serve")])

    def fresh(self) -> Resuming:
        limits = RunLimits(job_wait_seconds=0.02)
        return Resuming(self.world, programs={"serve": self._serve}, limits=limits)

    def _serve(self, run: Run) -> int:
        self.left.append((run, run.leave_running("server")))
        return 0

    def ends(self, seen: JobObservation = SETTLED) -> None:
        """The process ends, and with it the operation."""
        for run, process in self.left:
            run.finish(process)  # type: ignore[arg-type]
        self.jobs.put(handle_of(self.job), seen)

    def agent(self, process: Process) -> Agent:
        return process.agent([says("done")], self.catalog)

    def settled(self) -> list[BackgroundSettled]:
        return self.process.of(self.run_id, BackgroundSettled)


@pytest.mark.parametrize("repaired", [False, True])
def test_a_job_that_settled_since_is_recorded_once_and_no_longer_parks(*, repaired: bool) -> None:
    left = Left(repaired=repaired)
    process = left.fresh()
    assert P.BACKGROUND_OPERATION_PENDING in process.parks(process.agent([], left.catalog)).codes
    left.ends()
    before, process = written(left.world), left.fresh()
    planned = process.plans(left.agent(process))
    assert planned == process.plans(left.agent(process))
    assert planned.repair_pending
    plan = continuing(planned.plan)
    assert written(left.world) == before
    done = process.continues(left.agent(process))
    (fact,) = left.settled()
    assert (fact.handle_id, fact.status, fact.exit_code, fact.signal) == (left.job.handle_id, JobStatus.FAILED, 3, None)
    (claimed,) = [segment.claimed for segment in [process.segment(left.run_id)]]
    assert claimed is not None
    assert claimed.segments[-1].high_water == plan.source.high_water
    assert isinstance(done, Continued)
    check_sound(process, left.run_id)


@pytest.mark.parametrize("seen", [JobRunning(()), JobUnknown(), JobNotSeen("no such host")])
def test_a_job_that_was_not_seen_to_end_parks_and_nothing_is_recorded(seen: JobObservation) -> None:
    left = Left(repaired=True)
    left.ends(seen)
    before, process = written(left.world), left.fresh()
    planned = process.plans(process.agent([], left.catalog))
    assert not planned.repair_pending
    assert isinstance(planned.plan, Park)
    assert P.BACKGROUND_OPERATION_PENDING in codes(planned.plan)
    assert process.parks(process.agent([], left.catalog)).codes == planned.plan.codes
    assert (left.settled(), written(left.world)) == ([], before)


@pytest.mark.parametrize(
    ("seen", "recorded"), [(JobRunning(()), []), (JobUnknown(), ["unknown"]), (JobNotSeen("no such host"), ["unknown"])]
)
def test_a_job_that_a_person_declared_over_is_settled_where_nobody_can_look(
    seen: JobObservation, recorded: list[str]
) -> None:
    left = Left(repaired=True)
    left.jobs.put(handle_of(left.job), seen)
    process = left.fresh()
    assert left.job.operation_id is not None
    process.supervisor.lose_supervisor(left.job.operation_id)
    process.settle(SaidBy(left.job.operation_id, Statement.OVER, "ada", "the machine is gone"))
    owned = process.ownership.own(SESSION)
    assert process.settle_jobs(owned) == len(recorded)
    assert [fact.status for fact in left.settled()] == recorded


def test_looking_again_records_nothing_more() -> None:
    left = Left(repaired=True)
    left.ends()
    process = left.fresh()
    owned = process.ownership.own(SESSION)
    assert [process.settle_jobs(owned) for _ in range(3)] == [1, 0, 0]
    assert len(left.settled()) == 1


def test_a_record_that_failed_is_made_the_next_time() -> None:
    left = Left(repaired=True)
    left.ends()
    process = left.fresh()
    owned = process.ownership.own(SESSION)
    process.events_store.fail_at(BackgroundSettled.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        process.settle_jobs(owned)
    assert process.settle_jobs(owned) == 1
    assert len(left.settled()) == 1


def test_whoever_was_fenced_records_nothing() -> None:
    left = Left(repaired=True)
    left.ends()
    process = left.fresh()
    owned = process.ownership.own(SESSION)
    process.die()
    left.fresh().ownership.own(SESSION)
    with pytest.raises(WriteRefused) as refused:
        process.settle_jobs(owned)
    assert refused.value.code is WriteRefusal.OWNER_FENCED
    assert left.settled() == []


def test_an_open_run_a_claimed_run_and_no_run_at_all_are_left_alone() -> None:
    left = Left()
    left.ends()
    process = left.fresh()
    owned = process.ownership.own(SESSION)
    assert process.settle_jobs(owned) == 0, "it has no end yet: repair comes first"
    process.ownership.release(owned)
    process.continues(left.agent(process))
    owned = process.ownership.own(SESSION)
    assert process.settle_jobs(owned) == 0
    empty = Resuming(World())
    assert empty.settle_jobs(empty.ownership.own(SESSION)) == 0


@pytest.mark.parametrize("stream", ["session", "run"])
def test_a_damaged_session_is_left_alone(stream: str) -> None:
    left = Left(repaired=True)
    left.ends()
    tables = left.world.store._tables
    row = tables.streams[f"session:{SESSION}" if stream == "session" else f"run:{left.run_id}"][0]
    tables.records[row] = tables.records[row]._replace(state=b"{}")
    process = left.fresh()
    before = written(left.world)
    assert process.settle_jobs(process.ownership.own(SESSION)) == 0
    assert written(left.world) == before


class Asked(MemoryJobs):
    """Counts how often somebody looks."""

    looks = 0

    def observe(self, handles: Sequence[JobHandle]) -> Sequence[JobObservation]:
        self.looks += 1
        return super().observe(handles)


def test_nobody_looks_where_nothing_was_left_running() -> None:
    jobs = Asked()
    process = Resuming(World(jobs=jobs), programs={"serve": lambda run: 0})
    go(partial(process.turn, "go", [calls(("serve", {}))], MemoryCatalog([runs("serve")])))
    assert process.of(process.head(), RunEnded)
    assert process.settle_jobs(process.ownership.own(SESSION)) == 0
    assert jobs.looks == 0
