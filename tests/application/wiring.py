"""A whole runtime over adapters in memory, in a line: processes that share a store, agents with planned models.

process = Process()
result = go(lambda: process.turn("hello", PlannedModel([says("done")])))
assert process.topics(result.run_id)[-1] == "run.ended.v1"
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.memory.handover import MemoryHandover
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.memory.model_provider import Planned, PlannedModel
from safepoint.adapters.memory.supervisor import MemorySupervisor, Program
from safepoint.adapters.memory.workspace import MemoryWorkspaces
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.agent import Agent
from safepoint.application.async_ledger import AsyncLedger
from safepoint.application.cancel_run import COMMAND as CANCEL
from safepoint.application.cancel_run import CancelRun
from safepoint.application.capture_content import CaptureContent
from safepoint.application.child_runs import ChildRuns, ParentCall
from safepoint.application.commands_from_elsewhere import AtOwner, CommandsFromElsewhere
from safepoint.application.copied_folders import CopiedFolders
from safepoint.application.decide_permission import COMMAND as DECIDE_PERMISSION
from safepoint.application.decide_permission import DecidePermission
from safepoint.application.deliver_again import DeliverAgain
from safepoint.application.drive_run import DriveRun
from safepoint.application.late_outcome import LateOutcomes
from safepoint.application.ledger import Ledger
from safepoint.application.lineage import read_segment
from safepoint.application.live_operations import LiveOperations
from safepoint.application.live_runs import LiveRun, LiveRuns
from safepoint.application.open_ends import end_of
from safepoint.application.over import OverJudge
from safepoint.application.ownership import SessionOwnership
from safepoint.application.places import Places
from safepoint.application.plan_resume import PlanRequest, PlanResume
from safepoint.application.reconcile_operations import Hands, ReconcileOperations
from safepoint.application.reconcile_session import ReconcileSession
from safepoint.application.reconcilers import Reconcilers
from safepoint.application.reconciliation import Reconciliation
from safepoint.application.record_settled_jobs import RecordSettledJobs
from safepoint.application.recorded_handles import RecordedHandles
from safepoint.application.repair_preview import RepairPreview
from safepoint.application.repair_session import RepairSession
from safepoint.application.resume_run import Continued, Parked, ResumeRun
from safepoint.application.run_agent import RunAgent, RunLimits, Screen
from safepoint.application.run_turn import RunTurn, TurnResult
from safepoint.application.settle_operation import COMMAND as SETTLE
from safepoint.application.settle_operation import SettleOperation
from safepoint.application.spines import Spines
from safepoint.application.start_turn import StartTurn
from safepoint.application.stopping import Stopping
from safepoint.application.tidy_operations import TidyOperations
from safepoint.application.turn_context import ALL, ContextChoice
from safepoint.application.uncertain_operations import UncertainOperations
from safepoint.domain.events.event import Event
from safepoint.domain.events.run import Budgets, RunEnded
from safepoint.domain.events.session import RunAdmitted
from safepoint.domain.events.tool import ToolDispatched, ToolResponded
from safepoint.domain.identifiers import OperationId, RunId, SessionId, run_stream, session_stream
from safepoint.domain.planning.facts import SegmentFacts
from safepoint.domain.recovery.verdict import Resolution, Verdict
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.domain.unsealing import unseal
from safepoint.ports.clock import Clock
from safepoint.ports.handover import Handover
from safepoint.ports.model_provider import ModelProvider
from safepoint.ports.permission_gate import PermissionGate
from safepoint.ports.reconciler import Reconciler
from safepoint.ports.tool_catalog import ToolCatalog
from safepoint.ports.workspace import WorkspaceSeen

from .faulty_events import FaultyEvents

SESSION = SessionId("s1")
WORKSPACE = "/nowhere"
DEADLOCK_SECONDS = 60.0

ResultT = TypeVar("ResultT")
EventT = TypeVar("EventT", bound=Event)

ALLOW_ALL = AllowListGate([], DenyGate(), allow_all=True)


def go(work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Run on an event loop of its own; what does not end at all fails."""

    async def main() -> ResultT:
        with anyio.fail_after(DEADLOCK_SECONDS):
            result = await work()
        return result  # noqa: RET504 (by its type, a scope might swallow an error and go on)

    return anyio.run(main)


async def until(condition: Callable[[], object]) -> None:
    """Wait until something has come about on another thread or task."""
    while not condition():  # noqa: ASYNC110 (what is waited for knows no event)
        await anyio.sleep(0.002)


async def beside(other: Callable[[], Coroutine[Any, Any, None]], work: Awaitable[ResultT]) -> ResultT:
    """Await work while something else happens, to its end, beside it."""
    async with anyio.create_task_group() as group:
        group.start_soon(other)
        result = await work
    return result  # noqa: RET504 (by its type, a group might swallow an error and go on)


@dataclass
class World:
    """What processes share: a store, a host, sockets, and the locks of supervised operations."""

    store: MemoryStore = field(default_factory=MemoryStore)
    host: MemoryHost = field(default_factory=MemoryHost)
    handover: MemoryHandover = field(default_factory=MemoryHandover)
    supervisor: MemorySupervisor = field(default_factory=MemorySupervisor)
    jobs: MemoryJobs = field(default_factory=MemoryJobs)
    ids: Uuid7Ids = field(default_factory=Uuid7Ids)
    workspaces: MemoryWorkspaces = field(init=False)

    def __post_init__(self) -> None:
        """Make the one folder that agents work in."""
        self.workspaces = MemoryWorkspaces(self.ids)
        self.workspaces.make_folder(WORKSPACE)


class Process:
    """One process with every use case that runs agents.

    Args:
        world: shared with other processes; a new one by default.
        programs: what supervised commands run, by first word.
        cancel_bound_seconds: how long live tools are waited for after a stop.
        reconcilers: who looks up effects, and `observe_seconds_max` how long one look may take.
        supervisor: in place of one that runs `programs` under the world's locks.
    """

    def __init__(
        self,
        world: World | None = None,
        *,
        limits: RunLimits | None = None,
        clock: Clock | None = None,
        programs: Mapping[str, Program] | None = None,
        at_failpoint: Callable[[str], None] = lambda point: None,
        cancel_bound_seconds: float = 5.0,
        places: Places | None = None,
        supervisor: MemorySupervisor | None = None,
        reconcilers: Iterable[Reconciler] = (),
        observe_seconds_max: float = 30.0,
    ) -> None:
        self.world = world or World()
        self.events_store = FaultyEvents(self.world.store)
        self.failpoints = RecordingFailpoints(at_failpoint)
        self.incarnations = MemoryIncarnations(self.world.host)
        self.supervisor = supervisor or MemorySupervisor(programs, shared=self.world.supervisor)
        self.sink = CollectingSink()
        self.live = LiveOperations()
        self.live_runs = LiveRuns()
        self.spines = Spines(clock or SystemClock(), self.world.ids)
        self.ledger = Ledger(self.events_store, self.world.store.owners)
        self.async_ledger = AsyncLedger(self.ledger)
        self.ownership = SessionOwnership(
            self.world.store.owners,
            self.incarnations,
            self.ledger.forget,
            self.live.of,
            partial(end_of, self.ledger),
            self.live.when_over,
        )
        self.over = OverJudge(self.ownership, self.supervisor, self.live)
        self.repair = RepairSession(self.ledger, self.spines, self.sink)
        self.start = StartTurn(self.events_store, self.async_ledger, self.spines)
        self.capture = CaptureContent(lambda: self.world.ids.fresh(str))
        run_agent = RunAgent(
            self.async_ledger,
            self.spines,
            self.world.ids,
            self.failpoints,
            self.supervisor,
            self.world.jobs,
            self.live,
            limits or RunLimits(),
            places,
            self.capture,
        )
        self.drive = DriveRun(
            run_agent, self.ownership, self.live_runs, self.live, self.sink, cancel_bound_seconds=cancel_bound_seconds
        )
        known = self.world.store.views.folders_of
        copied = CopiedFolders(self.world.workspaces, known)
        children = ChildRuns(self.events_store)
        self.run_turn = RunTurn(self.ownership, self.repair, self.start, self.drive, self.capture, copied, children)
        preview = RepairPreview(self.world.jobs)
        workspaces = self.world.workspaces
        self.plan = PlanResume(self.events_store, self.ownership, self.over, workspaces, preview, folders_of=known)
        settle_jobs = RecordSettledJobs(self.ledger, self.spines, self.world.jobs)
        self.reconcile_operations = ReconcileOperations(
            self.async_ledger,
            UncertainOperations(self.events_store, self.ledger, self.over, workspaces, copied),
            DeliverAgain(
                self.async_ledger,
                self.spines,
                self.supervisor,
                self.live,
                LateOutcomes(self.ledger, self.spines, self.live),
                self.failpoints,
            ),
            Reconcilers(reconcilers),
            RecordedHandles(self.supervisor, self.events_store),
            self.supervisor,
            self.spines,
            self.sink,
            observe_seconds_max=observe_seconds_max,
        )
        self.reconcile_session = ReconcileSession(
            self.world.store.views, self.ownership, self.repair, settle_jobs, self.reconcile_operations, self.live
        )
        self.resume_run = ResumeRun(
            self.async_ledger,
            self.ownership,
            self.repair,
            settle_jobs,
            self.plan,
            self.drive,
            self.spines,
            self.world.ids,
            self.failpoints,
            self.sink,
            self.reconcile_operations,
            self.capture,
        )
        self.at_owner = AtOwner(self.ownership, self.handover, pause=lambda seconds: time.sleep(seconds / 100))
        self.cancel = CancelRun(self.ledger, self.ownership, self.repair, self.live_runs, self.at_owner, self.spines)
        self.decide = DecidePermission(
            self.ledger,
            self.ownership,
            self.repair,
            self.live_runs,
            self.at_owner,
            self.spines,
            self.world.store.views,
        )
        self.tidy = TidyOperations(Reconcilers(reconcilers), self.world.workspaces)
        self.settle = SettleOperation(
            self.events_store,
            self.world.store.views,
            self.ledger,
            self.ownership,
            self.repair,
            self.live_runs,
            self.over,
            self.supervisor,
            self.at_owner,
            self.spines,
            self.sink,
            self.tidy,
        )
        self.commands = CommandsFromElsewhere(
            {CANCEL: self.cancel.answer, DECIDE_PERMISSION: self.decide.answer, SETTLE: self.settle.answer}
        )

    @property
    def handover(self) -> Handover:
        """The way to other processes."""
        return self.world.handover

    def listen(self) -> None:
        """Answer what other processes hand over."""
        self.handover.serve(self.ownership.incarnation, self.commands.answer)

    def die(self) -> None:
        """Be killed, as others see it; what runs on in this test runs on in a ghost."""
        self.incarnations.die()

    async def turn(
        self,
        text: str,
        model: ModelProvider | Sequence[Planned],
        tools: ToolCatalog | Iterable[Callable[..., Any]] = (),
        *,
        gate: PermissionGate = ALLOW_ALL,
        session_id: SessionId = SESSION,
        screen: Screen | None = None,
        started: Callable[[LiveRun], None] = lambda live: None,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ParentCall | None = None,
    ) -> TurnResult:
        """Run one user message to its end."""
        agent = self.agent(model, tools, gate)
        return await self.run_turn(
            session_id, text, agent, screen or Screen(), started, context=context, budgets=budgets, parent=parent
        )

    async def resume(
        self,
        model: ModelProvider | Sequence[Planned],
        tools: ToolCatalog | Iterable[Callable[..., Any]] = (),
        *,
        gate: PermissionGate = ALLOW_ALL,
        session_id: SessionId = SESSION,
        request: PlanRequest | None = None,
        reconcile: bool = False,
    ) -> Parked | Continued:
        """Continue a session's interrupted run, or say why not."""
        agent = self.agent(model, tools, gate)
        return await self.resume_run(session_id, agent, Screen(), request=request, reconcile=reconcile)

    async def reconcile(
        self,
        tools: ToolCatalog | Iterable[Callable[..., Any]] = (),
        operation_id: OperationId | None = None,
        *,
        session_id: SessionId = SESSION,
        folder: Path | None = None,
        stopping: Stopping | None = None,
    ) -> Reconciliation:
        """Look at the world again, and settle what can be."""
        catalog = FunctionCatalog(tools) if isinstance(tools, Iterable) else tools
        result = await self.reconcile_session(session_id, Hands(catalog, folder), operation_id, stopping)
        assert result is not None
        return result

    def agent(
        self,
        model: ModelProvider | Sequence[Planned],
        tools: ToolCatalog | Iterable[Callable[..., Any]] = (),
        gate: PermissionGate = ALLOW_ALL,
    ) -> Agent:
        """An agent in the world's only folder."""
        provider = PlannedModel(list(model)) if isinstance(model, Sequence) else model
        catalog = FunctionCatalog(tools) if isinstance(tools, Iterable) else tools
        seen = self.world.workspaces.ensure(WORKSPACE)
        assert isinstance(seen, WorkspaceSeen)
        return Agent(provider, catalog, gate, "Be careful.", Path(WORKSPACE), seen.identity)

    def session_events(self, session_id: SessionId = SESSION) -> list[Event]:
        """The facts of a session, verified."""
        return self._read(session_stream(session_id))

    def events(self, run_id: RunId) -> list[Event]:
        """The facts of a run, verified."""
        return self._read(run_stream(run_id))

    def _read(self, stream: str) -> list[Event]:
        events: list[Event] = []
        previous = FIRST_PREVIOUS_DIGEST
        with self.events_store.snapshot() as reader:
            while rows := reader.read(stream, after=len(events)):
                for row in rows:
                    sealed = unseal(row, len(events) + 1, previous)
                    previous = sealed.digest
                    events.append(sealed.event)
        return events

    def stored_bytes(self, run_id: RunId) -> list[bytes]:
        """The facts of a run as they are kept."""
        rows: list[bytes] = []
        with self.events_store.snapshot() as reader:
            while page := reader.read(run_stream(run_id), after=len(rows)):
                rows.extend(row.state for row in page)
        return rows

    def topics(self, run_id: RunId) -> list[str]:
        """The kinds of a run's facts, without versions."""
        return [event.topic.removesuffix(".v1") for event in self.events(run_id)]

    def of(self, run_id: RunId, kind: type[EventT]) -> list[EventT]:
        """The facts of one kind."""
        return [event for event in self.events(run_id) if isinstance(event, kind)]

    def head(self, session_id: SessionId = SESSION) -> RunId:
        """The newest run of a session."""
        return [event for event in self.session_events(session_id) if isinstance(event, RunAdmitted)][-1].run_id

    def segment(self, run_id: RunId) -> SegmentFacts:
        """The facts of a run as the planner reads them."""
        with self.events_store.snapshot() as reader:
            segment = read_segment(reader, run_id)
        assert segment is not None
        return segment

    def resolution(self, run_id: RunId) -> Resolution:
        """What the resolver says of a run."""
        return self.segment(run_id).resolution

    def verdicts(self, run_id: RunId) -> list[Verdict]:
        """What the resolver says of each call of a run."""
        return list(self.resolution(run_id).verdicts)

    def responses(self, run_id: RunId) -> list[ToolResponded]:
        """The answers of a run, in the order in which they were written."""
        return self.of(run_id, ToolResponded)

    def response(self, run_id: RunId, tool_name: str) -> ToolResponded:
        """The only answer of a tool."""
        (only,) = [one for one in self.responses(run_id) if one.tool_name == tool_name]
        return only

    def dispatches(self, run_id: RunId) -> list[ToolDispatched]:
        """The dispatches of a run."""
        return self.of(run_id, ToolDispatched)

    def owner(self, session_id: SessionId = SESSION) -> object:
        """Who owns a session, None when nobody does."""
        row = self.world.store.owners.owner(session_id)
        return None if row is None else row.incarnation_id

    def projections_agree(self) -> bool:
        """Whether the rows that were written are those that a rebuild makes."""
        return not list(self.world.store.projections.differences())

    def not_over(self, run_id: RunId) -> tuple[OperationId, ...]:
        """The operations of a run that may still be running."""
        segment = self.segment(run_id)
        return tuple(state.operation_id for state in self.over.not_over(segment.survey, segment.resolution))


def check_sound(process: Process, run_id: RunId) -> None:
    """What holds of every run that has ended: one terminal event, a sound ledger, projections that agree."""
    events = process.events(run_id)
    assert [event.topic for event in events].count(RunEnded.topic) == 1, process.topics(run_id)
    resolution = process.resolution(run_id)
    assert not resolution.issues
    assert not resolution.has_corruption
    assert process.projections_agree()
