"""One process of the world: the whole application, composed as in production, over gated ports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path

from dependency_injector import providers

from safepoint.adapters.composition import Composition
from safepoint.adapters.failpoints.null import NoFailpoints
from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.handover import MemoryHandover
from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tool_catalog import MemoryCatalog, MemoryTool
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.settings import Settings
from safepoint.application.agent import Agent
from safepoint.application.ledger import Ledger
from safepoint.application.ownership import Owned, SessionOwnership
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Parked
from safepoint.application.run_agent import Screen
from safepoint.application.settlement import SaidBy
from safepoint.application.spines import Spines
from safepoint.application.tool_facts import response_of
from safepoint.domain.commands import CommitAttestation
from safepoint.domain.errors import SafepointError
from safepoint.domain.events.tool import Effect as Said
from safepoint.domain.events.tool import Statement, ToolAttested
from safepoint.domain.identifiers import OperationId
from safepoint.domain.operation.state import Operation, unanswered_of
from safepoint.domain.planning.outcome import Park
from safepoint.domain.reasons import ParkReason
from safepoint.domain.replay.items import ResultItem, UserItem
from safepoint.domain.tool_results import PreparedResult, prepare_result
from safepoint.ports.incarnations import Incarnations
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from safepoint.ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from safepoint.ports.model_step import ModelPart, TextDelta
from safepoint.ports.tool_catalog import Arguments, SyncCall, ToolContext
from safepoint.ports.workspace import WorkspaceIdentity, WorkspaceObservation

from .fibers import running
from .rules import PARTIAL
from .stepped_loop import complete
from .supervised import GatedSupervisor, supervised_call
from .world import SESSION, WORKSPACE, Effect, GatedEvents, GatedIncarnations, GatedOwners, Seen, World

_parts: dict[str, Composition] = {}


class Process:
    """What a person can do in one process; every method is run on a fiber of it.

    Args:
        tools: names of the tools that the model calls at once, in one step; `supervised` ones run beside the process.
    """

    def __init__(
        self,
        world: World,
        name: str,
        *,
        tools: Sequence[str] = ("pay", "send"),
        supervises: frozenset[str] = frozenset(),
    ) -> None:
        self.world = world
        self.seen = world.process(name)
        self.ids = CountingIds(f"{name}-")
        self.supervisor = GatedSupervisor(world, self.seen)
        self.events = GatedEvents(world, self.seen)
        self.owners = GatedOwners(world, self.seen)
        self.incarnations: Incarnations = GatedIncarnations(world, self.seen)
        self.tools = tuple(tools)
        self.catalog = MemoryCatalog([self._tool(tool, supervised=tool in supervises) for tool in tools])
        self.parts = self._composed(name)
        self.ownership: SessionOwnership = self.parts.ownership()
        self.hand: Owned | None = None
        self.shared: object = None

    def _composed(self, name: str) -> Composition:
        """Compositions are costly to make: one for each name, emptied in between."""
        parts = _parts.get(name)
        if parts is None:
            parts = _parts[name] = Composition(settings=Settings(store=Path(WORKSPACE) / "store.sqlite"))
        parts.reset_singletons()
        mine: dict[str, object] = {
            "clock": ManualClock(),
            "ids": self.ids,
            "sink": _Sink(self.world, self.seen),
            "failpoints": NoFailpoints(),
            "events": self.events,
            "store": _Store(self),
            "supervisor": self.supervisor,
            "jobs": MemoryJobs(),
            "handover": MemoryHandover(),
            "workspaces": GatedWorkspaces(self.world, self.seen),
            "incarnations": self.incarnations,
        }
        for part, made in mine.items():
            provider = getattr(parts, part)
            provider.reset_override()
            provider.override(providers.Object(made))
        return parts

    def _tool(self, name: str, *, supervised: bool) -> MemoryTool:
        call = supervised_call(self.world, name) if supervised else SyncCall(partial(self._acts, name))
        return MemoryTool(name=name, implementation=call, resource_key=name)

    def _acts(self, name: str, arguments: Arguments, context: ToolContext) -> str:
        self.world.stands(self.seen, f"effect {name}")
        assert self.world.rules is not None
        self.world.rules.acts(Effect(context.operation_id, name))
        return f"{name} is done"

    def agent(self) -> Agent:
        """A model that calls every tool that it has no answer of, all in one step, and then says so."""
        seen = self.world.workspaces.observe(WORKSPACE)
        gate = AllowListGate([], DenyGate(), allow_all=True)
        model = ScriptedModel(self.world, self.seen, self.tools)
        identity = seen.identity  # type: ignore[union-attr]
        return Agent(model, self.catalog, gate, "Be careful.", Path(WORKSPACE), identity)

    # ---- what a person does ----------------------------------------------------------------------------------------

    def does(self, *deeds: Callable[[Process], object]) -> Callable[[], None]:
        """One deed after another; what the application refuses is told, and the next one follows."""

        self.seen.busy += 1

        def work() -> None:
            for deed in deeds:
                self.world.stands(self.seen, "begin")
                try:
                    told = deed(self)
                except SafepointError as error:
                    told = getattr(error, "code", None) or type(error).__name__
                self.tells(str(told))
            self.seen.busy -= 1
            if not self.seen.busy:
                self.world.stands(self.seen, "exit")
                self.world.exits(self.seen.name)

        return work

    def tells(self, told: str) -> None:
        """Say what a deed came to."""
        self.seen.told.append(told)
        self.seen.learns(told)


def owns_by_hand(process: Process) -> None:
    """Own the session for deeds that ask nobody whether they may: only the ledger stands between them."""
    process.hand = process.ownership.own(SESSION)
    process.ownership.keep(process.hand)


def turn(text: str = "Pay and send.") -> Callable[[Process], object]:
    """Give a message to the agent."""

    def deed(process: Process) -> object:
        run_turn = process.parts.run_turn()
        return complete(run_turn(SESSION, text, process.agent(), Screen())).outcome.status.value

    return deed


def resume(process: Process) -> object:
    """Resume what was interrupted, or say why not."""
    resumed = complete(process.parts.resume_run()(SESSION, process.agent(), Screen(), request=PlanRequest()))
    if isinstance(resumed, Parked):
        return ",".join([*resumed.codes, *resumed.changed])
    return resumed.outcome.status.value


def repair(process: Process) -> object:
    """Bring what a dead owner left to its end."""
    owned = process.ownership.own(SESSION)
    repaired = process.parts.repair_session()(owned)
    process.ownership.release(owned)
    return repaired.kind.value


def take_over_by_force(process: Process) -> object:
    """Fence whoever owns the session, dead or alive, and end its run: the right to nothing more. SPEC section 15."""
    process.seen.forces = True
    return process.parts.take_over()(SESSION, fence_only=True).how.value


def take_over_by_ending(process: Process) -> object:
    """End the process that owns the session, wait for its lock, and take over from the dead. SPEC section 15."""
    return process.parts.take_over()(SESSION).how.value


def stop(process: Process) -> object:
    """Stop the run that this process drives, as a person does from another thread."""
    process.world.stands(process.seen, "stop")
    live = process.parts.live_runs().get(SESSION)
    return "nothing to stop" if live is None else f"stopped {live.cancel_from_thread('a person')}"


def after(name: str) -> Callable[[Process], object]:
    """Wait until another process is gone."""

    def deed(process: Process) -> object:
        fiber = running()
        assert fiber is not None
        fiber.wait(lambda: not process.world.processes[name].alive)
        return f"after {name}"

    return deed


def exchange_workspace(process: Process) -> object:
    """Put another folder in the place of the one that agents work in."""
    process.world.stands(process.seen, "exchange")
    process.world.exchange_workspace()
    return "exchanged"


def settle(process: Process) -> object:
    """A careful person: asks whether what is open is over, looks at the outside world, and says what happened."""
    open_ = _open_operations(process)
    if open_ is None:
        return "operation_not_over"
    for operation_id in open_:
        process.world.stands(process.seen, "inspect")
        done = process.world.done(operation_id)
        process.seen.learns(done)
        _say(process, operation_id, Statement.COMPLETED if done else Statement.NOT_EXECUTED)
    return f"settled {len(open_)}"


def settle_hastily(process: Process) -> object:
    """A hasty person: asks nothing, and says that it is completed as soon as the effect can be seen."""
    assert process.world.rules is not None
    process.world.stands(process.seen, "inspect")
    seen = [one for one in process.world.rules.unanswered() if process.world.done(one)]
    process.seen.learns(tuple(seen))
    for operation_id in seen:
        _say(process, operation_id, Statement.COMPLETED)
    return f"settled {len(seen)}"


def _say(process: Process, operation_id: OperationId, statement: Statement) -> None:
    result = "done" if statement is Statement.COMPLETED else None
    process.parts.settle_operation()(SaidBy(operation_id, statement, "a person", "looked", result))


def _open_operations(process: Process) -> list[OperationId] | None:
    """What parks the session, as it is shown to a person; None while some of it may still run."""
    plan = process.parts.plan_resume()(SESSION, process.agent(), PlanRequest()).plan
    if not isinstance(plan, Park):
        return []
    if ParkReason.EFFECT_MAY_BE_RUNNING in plan.codes or ParkReason.SESSION_BUSY in plan.codes:
        return None
    dangling = [reason for reason in plan.reasons if reason.code is ParkReason.DANGLING_TOOL_STATE]
    return [OperationId(str(reason.detail["operation"])) for reason in dangling]


def settle_what_is_open(process: Process, owned: Owned) -> object:
    """State what happened of every operation without an outcome, if all of them are over."""
    ledger: Ledger = process.parts.ledger()
    head = ledger.session(SESSION).head
    run = None if head is None else ledger.run(head.run_id)
    if run is None or run.opening is None:
        return "nothing to settle"
    if process.parts.over().not_over_in(run):
        return "operation_not_over"
    open_ = [operation for operation in unanswered_of(run) if operation.dispatch is not None]
    for operation in open_:
        process.world.stands(process.seen, "inspect")
        done = any(effect.operation_id == operation.operation_id for effect in process.world.effects)
        process.seen.learns(done)
        ledger.execute(_attestation(process, owned, operation, ledger.run(run.opening.run_id).sequence, done=done))
    return f"settled {len(open_)}"


def _attestation(
    process: Process, owned: Owned, operation: Operation, sequence: int, *, done: bool
) -> CommitAttestation:
    dispatch, call = operation.dispatch, operation.called
    assert dispatch is not None
    assert call is not None
    spines: Spines = process.parts.spines()
    attested = ToolAttested(
        **spines.run(dispatch.identity),
        operation_id=dispatch.operation_id,
        statement=Statement.COMPLETED if done else Statement.NOT_EXECUTED,
        by="a person",
        note="looked",
    )
    said = (
        prepare_result(f"{dispatch.tool_name} is done", effect=Said.DONE)
        if done
        else PreparedResult("it was not executed", is_error=True, effect=Said.NONE)
    )
    response = response_of(spines.run(dispatch.identity), call, dispatch.operation_id, said)
    guard = (owned.session_id, owned.incarnation_id, owned.epoch)
    return CommitAttestation(*guard, dispatch.run_id, sequence, attested, response)


class ScriptedModel(ModelProvider):
    """Its answer is a function of what it is shown."""

    def __init__(self, world: World, process: Seen, tools: tuple[str, ...]) -> None:
        self._world = world
        self._process = process
        self._tools = tools

    def profile(self) -> ProviderProfile:
        return ProviderProfile("planned", "planned")

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        self._world.stands(self._process, "request")
        assert self._world.rules is not None
        self._world.rules.answers(self._process, request, proof.run_id)
        asked = max(place for place, item in enumerate(request.history) if isinstance(item, UserItem))
        answered = [item for item in request.history[asked:] if isinstance(item, ResultItem) and not item.is_error]
        wanted = [tool for tool in self._tools if tool not in {item.tool_name for item in answered}]
        yield TextDelta(PARTIAL)
        first = sum(isinstance(item, UserItem) for item in request.history) == 1
        yield calls(*((tool, {}) for tool in wanted)) if wanted and first else says("Done.")

    async def aclose(self) -> None:
        """Nothing is held open."""


class GatedWorkspaces(WorkspaceIdentity):
    """The workspace as one process sees it."""

    def __init__(self, world: World, process: Seen) -> None:
        self._world = world
        self._process = process

    def observe(self, path: str) -> WorkspaceObservation:
        seen = self._world.workspaces.observe(path)
        self._process.saw = getattr(seen, "identity", None)
        self._process.learns(seen)
        return seen

    def ensure(self, path: str) -> WorkspaceObservation:
        return self.observe(path)

    def renew(self, path: str) -> WorkspaceObservation:
        raise AssertionError("nobody renews a workspace here")

    def adopt(self, path: str) -> WorkspaceObservation:
        raise AssertionError("nobody adopts a workspace here")

    def disown(self, path: str) -> WorkspaceObservation:
        raise AssertionError("nobody adopts a workspace here")


class _Sink(LifecycleSink):
    """Between an approved plan and the look that revalidates it, others may act."""

    def __init__(self, world: World, process: Seen) -> None:
        self._world = world
        self._process = process

    def record(self, event: LifecycleEvent) -> None:
        fiber = running()
        if event.kind is LifecycleKind.PLAN_APPROVED and fiber is not None:
            self._process.looked.discard(fiber.name)


class _Store:
    """The parts of the store that use cases ask for by name."""

    def __init__(self, process: Process) -> None:
        inner = process.world.store
        self.owned_sessions = inner.owned_sessions
        self.events, self.owners = inner.events, process.owners
        self.views, self.projections = inner.views, inner.projections


__all__ = [
    "Process",
    "repair",
    "resume",
    "settle",
    "take_over_by_ending",
    "take_over_by_force",
    "turn",
]
