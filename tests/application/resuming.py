"""Processes that are killed on purpose, and others that plan and resume after them, over a watched store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.sqlite.store import open_store
from safepoint.application.agent import Agent
from safepoint.application.plan_resume import Planned as PlannedResume
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.record_settled_jobs import RecordSettledJobs
from safepoint.application.resume_run import Continued, Parked, ResumeRun
from safepoint.application.run_agent import Screen
from safepoint.domain.errors import StoreError, StoreUnavailable
from safepoint.domain.events.model import ModelStepCompleted
from safepoint.domain.events.run import RunClaimed, RunEnded
from safepoint.domain.events.session import RunAdmitted
from safepoint.domain.events.tool import ToolCalled, ToolResponded
from safepoint.domain.identifiers import RunId
from safepoint.domain.planning.outcome import Continue, Park, Plan
from safepoint.domain.reasons import ParkReason
from safepoint.ports.event_store import Commit, CommitAnswer, EventReader, EventStore
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleKind

from .wiring import SESSION, Process, World, go

ACT = calls(("act", {"n": 1}))
T2 = ToolResponded.topic
END = RunEnded.topic


class Killed(BaseException):
    """Nothing of the process runs any more."""


def killing(at: Failpoint) -> Callable[[str], None]:
    """What kills a process at a point."""

    def hit(point: str) -> None:
        if point == at:
            raise Killed(point)

    return hit


class Resuming(Process):
    """A process; `between_looks` is called between a plan that continues and its revalidation."""

    def __init__(self, world: World, *, between_looks: Callable[[], object] | None = None, **more: Any) -> None:
        super().__init__(world, **more)
        self.settle_jobs = RecordSettledJobs(self.ledger, self.spines, world.jobs)
        if between_looks is not None:
            self.sink = _ActingSink(between_looks)
        self.resume_run = ResumeRun(
            self.async_ledger,
            self.ownership,
            self.repair,
            self.settle_jobs,
            self.plan,
            self.drive,
            self.spines,
            world.ids,
            self.failpoints,
            self.sink,
            self.reconcile_operations,
            self.capture,
        )

    def plans(self, agent: Agent, request: PlanRequest | None = None) -> PlannedResume:
        """Look."""
        return self.plan(SESSION, agent, request or PlanRequest())

    def resumes(self, agent: Agent, request: PlanRequest | None = None) -> Parked | Continued:
        """Continue, or say why not."""
        return go(partial(self.resume_run, SESSION, agent, Screen(), request=request))

    def continues(self, agent: Agent, request: PlanRequest | None = None) -> Continued:
        """Continue, which must be possible."""
        resumed = self.resumes(agent, request)
        assert isinstance(resumed, Continued), resumed
        return resumed

    def parks(self, agent: Agent, request: PlanRequest | None = None) -> Parked:
        """Be parked, without a request to the provider."""
        resumed = self.resumes(agent, request)
        assert isinstance(resumed, Parked), resumed
        assert requests(agent) == 0
        return resumed

    def is_killed(self, agent: Agent, request: PlanRequest | None = None, *, at: Failpoint) -> None:
        """Resume, and be killed at a point on the way to the provider."""
        self.failpoints.at_hit = killing(at)
        with pytest.raises(Killed):
            self.resumes(agent, request)
        self.die()

    def is_killed_after_its_effect(self, work: Callable[[], object]) -> RunId:
        """Work until a result was delivered, and be killed before the next step is recorded."""

        def delivered(point: str) -> None:
            if point == Failpoint.RESULT_DELIVERED:
                self.events_store.fail_at(ModelStepCompleted.topic, Failure.UNAVAILABLE)

        self.failpoints.at_hit = delivered
        with pytest.raises(StoreError):
            work()
        self.die()
        return self.head()


class _ActingSink(CollectingSink):
    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act: Callable[[], object] | None = act

    def record(self, event: LifecycleEvent) -> None:
        super().record(event)
        if event.kind is LifecycleKind.PLAN_APPROVED and self._act is not None:
            act, self._act = self._act, None
            act()


def requests(*agents: Agent) -> int:
    """How often the provider was asked."""
    providers = {id(agent.provider): agent.provider for agent in agents}.values()
    return sum(len(provider.asked) for provider in providers if isinstance(provider, PlannedModel))


def failed(world: World, tools: Sequence[Callable[..., Any]], first: Planned = ACT) -> RunId:
    """A turn whose provider failed after the first step: orderly ended, and continuable."""
    process = Process(world)
    return go(partial(process.turn, "go", [first], tools)).run_id


def killed(world: World, tools: Sequence[Callable[..., Any]], *at: str, first: Planned = ACT) -> RunId:
    """A turn that is killed where events of these kinds would have been written, its end by default; it has no end."""
    process = Process(world)
    for topic in at or (END,):
        process.events_store.fail_at(topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        go(partial(process.turn, "go", [first, says("half")], tools))
    process.die()
    return process.head()


def codes(plan: Plan) -> tuple[ParkReason, ...]:
    """Why a plan parks; nothing when it continues."""
    return plan.codes if isinstance(plan, Park) else ()


def continuing(plan: Plan) -> Continue:
    """A plan that continues."""
    assert isinstance(plan, Continue), plan
    return plan


def shown(agent: Agent) -> list[tuple[str, str]]:
    """What the provider was shown first: kind and text, tool or result of each item."""
    assert isinstance(agent.provider, PlannedModel)
    return spoken(agent.provider.asked[0].request.history)


def spoken(items: Sequence[Any]) -> list[tuple[str, str]]:
    """Items without ids."""
    return [
        (i.kind, str(i.result) if i.kind == "result" else str(i.args) if i.kind == "call" else i.text) for i in items
    ]


def written(world: World) -> dict[str, list[bytes]]:
    """Every stream of a store, as it is kept."""
    kept: dict[str, list[bytes]] = {}
    with world.store.events.snapshot() as reader:
        for stream in world.store.streams():
            kept[stream] = [row.state for row in reader.read(stream)]
    return kept


def admitted(process: Process) -> list[RunId]:
    """The runs of the session, in order."""
    return [event.run_id for event in process.session_events() if isinstance(event, RunAdmitted)]


def claims(process: Process) -> list[RunClaimed]:
    """Every claim in the session, in order."""
    return [claim for run_id in admitted(process) for claim in process.of(run_id, RunClaimed)]


def effects_of(process: Process) -> list[ToolCalled]:
    """Every call in the session, in order."""
    return [call for run_id in admitted(process) for call in process.of(run_id, ToolCalled)]


class WatchedStore:
    """A store in memory or in SQLite: commits can be left in doubt, and something can happen at the n-th access."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.inner = cast("MemoryStore", MemoryStore() if kind == "memory" else open_store(folder / "store.sqlite"))
        self.owners = cast("Any", _Accesses(self.inner.owners, self._access))
        self.projections, self.streams, self.views = self.inner.projections, self.inner.streams, self.inner.views
        self.events = _WatchedEvents(self.inner.events, self._access)
        self._at: tuple[int, Callable[[], None]] | None = None

    def fail_next(self, failure: Failure) -> None:
        """As the store in memory."""
        self.events.failing.append(failure)

    def close(self) -> None:
        """Close the store."""
        self.inner.close()

    def world(self) -> World:
        """A world around this store."""
        return World(store=cast("MemoryStore", self))

    def at_access(self, number: int, act: Callable[[], None]) -> None:
        """Let something happen, once and to its end, around the n-th access from now, counted from 0."""
        self._at = (number, act)

    @property
    def waits(self) -> bool:
        """True when it has not happened yet."""
        return self._at is not None

    def _access(self) -> None:
        if self._at is None:
            return
        left, act = self._at
        self._at = (left - 1, act) if left else None
        if not left:
            aside(act)


def aside(act: Callable[[], object]) -> None:
    """Do something on a thread of its own, to its end."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 (told to whoever waits)
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


class _WatchedEvents(EventStore):
    def __init__(self, inner: EventStore, access: Callable[[], None]) -> None:
        self.failing: list[Failure] = []
        self._inner = inner
        self._access = access

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        self._access()
        failure = self.failing.pop(0) if self.failing else None
        if failure in {Failure.UNAVAILABLE, Failure.COMMIT_LOST}:
            raise StoreUnavailable("it is not known whether the last commit was kept")
        answers = self._inner.append(commits)
        if failure is Failure.COMMIT_STORED:
            raise StoreUnavailable("it is not known whether the last commit was kept")
        self._access()
        return answers

    def snapshot(self) -> AbstractContextManager[EventReader]:
        self._access()
        return self._inner.snapshot()

    def close(self) -> None:
        self._inner.close()


class _Accesses:
    """An object whose calls are accesses."""

    def __init__(self, inner: object, access: Callable[[], None]) -> None:
        self._inner = inner
        self._access = access

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def accessed(*args: Any, **named: Any) -> Any:
            self._access()
            return call(*args, **named)

        return accessed
