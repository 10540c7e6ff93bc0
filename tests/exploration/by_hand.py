"""Deeds of a caller who asks nobody whether he may: only the ledger, the start proof and the store stand in his way."""

from __future__ import annotations

from collections.abc import Callable

from safepoint.application.begin_continuation import BeginContinuation
from safepoint.application.ownership import Owned
from safepoint.application.plan_resume import PlanRequest, fresh_ids
from safepoint.application.run_agent import Screen
from safepoint.application.run_recorder import RunRecorder
from safepoint.application.spines import Spines
from safepoint.application.start_proof import StartAttempt, StartProof
from safepoint.application.start_turn import Begun
from safepoint.application.tool_facts import response_of
from safepoint.domain.canonical import args_hash
from safepoint.domain.commands import AppendLate, OpenRun
from safepoint.domain.events.model import ModelStepCompleted, UserMessage
from safepoint.domain.events.outside import WorkspaceRenewed
from safepoint.domain.events.run import TOOL_BOUNDARY_PROTOCOL, RunOpened, RunStatus
from safepoint.domain.events.session import RunAdmitted, RunKind, SessionOpened
from safepoint.domain.events.tool import Effect as Said
from safepoint.domain.events.tool import ToolCalled, ToolDispatched
from safepoint.domain.identifiers import (
    ClaimId,
    ExecutionIdentity,
    IncarnationId,
    OperationId,
    SessionId,
    StepId,
    ToolCallId,
)
from safepoint.domain.planning.outcome import Park, Reason
from safepoint.domain.tool_results import prepare_result
from safepoint.ports.tool_catalog import BoundCall

from .fibers import running
from .process import Process, settle_what_is_open
from .stepped_loop import complete
from .world import SESSION, WORKSPACE, Effect

TOOL = "pay"


class Shared:
    """What the fibers of one process hand to each other."""

    begun: Begun | None = None
    command: OpenRun | None = None
    attempt: StartAttempt | None = None
    recorder: RunRecorder | None = None
    call: ToolCalled | None = None
    dispatch: ToolDispatched | None = None


def shared(process: Process) -> Shared:
    """The table that they hand over at."""
    table = process.shared
    if table is None:
        table = process.shared = Shared()
    assert isinstance(table, Shared)
    return table


def _wait(ready: Callable[[], object]) -> None:
    fiber = running()
    assert fiber is not None
    fiber.wait(lambda: bool(ready()))


def resume(process: Process) -> object:
    """Plan, claim, start and go on, without owning the session for this alone and without repair."""
    assert process.hand is not None
    spines: Spines = process.parts.spines()
    fresh = fresh_ids(process.ids.fresh(ClaimId), spines.identity(SESSION))
    plan = process.parts.plan_resume()(SESSION, process.agent(), PlanRequest(), fresh).plan
    if isinstance(plan, Park):
        return ",".join(plan.codes)
    begin = BeginContinuation(process.parts.async_ledger(), spines, process.parts.failpoints())
    begun = complete(begin(process.hand, plan, None))
    return begun.code.value if isinstance(begun, Reason) else _drive(process, begun)


def turn(process: Process) -> object:
    """Open a run and drive it."""
    begun = complete(process.parts.start_turn()(_hand(process), process.agent(), "And now?"))
    return _drive(process, begun)


def repair(process: Process) -> object:
    """Repair the head run."""
    return process.parts.repair_session()(_hand(process)).kind.value


def settle(process: Process) -> object:
    """Settle what is over, whether or not its run has ended."""
    assert process.hand is not None
    return settle_what_is_open(process, process.hand)


def add_late_fact(process: Process) -> object:
    """Write what may follow a terminal event into the head run."""
    assert process.hand is not None
    head = process.parts.ledger().session(SESSION).head
    assert head is not None
    spines: Spines = process.parts.spines()
    identity = ExecutionIdentity(SESSION, head.run_id, head.turn_id, head.invocation_id)
    here = process.agent().workspace_identity or ""
    fact = WorkspaceRenewed(**spines.run(identity), from_identity="workspace:v1:another", to_identity=here)
    process.parts.ledger().execute(AppendLate(*_guard(process), head.run_id, fact))
    return "added"


def _hand(process: Process) -> Owned:
    assert process.hand is not None
    return process.hand


def _guard(process: Process) -> tuple[SessionId, IncarnationId, int]:
    hand = _hand(process)
    return (hand.session_id, hand.incarnation_id, hand.epoch)


def _drive(process: Process, begun: Begun) -> object:
    outcome = complete(process.parts.drive_run()(begun, process.agent(), Screen(), lambda run: None))
    return outcome.status.value


# ---- one start ---------------------------------------------------------------------------------------------------


def start(process: Process) -> object:
    """Begin a run, and hand it over; whoever likes may drive it."""
    table = shared(process)
    table.begun = complete(process.parts.start_turn()(_hand(process), process.agent(), "Pay."))
    return drive(process)


def drive(process: Process) -> object:
    """Drive what was begun."""
    table = shared(process)
    _wait(lambda: table.begun)
    assert table.begun is not None
    return _drive(process, table.begun)


def start_by_same_attempt(process: Process) -> object:
    """Make an attempt that both fibers make, with the very same object."""
    table = shared(process)
    if table.attempt is None:
        table.attempt = StartAttempt(_command(process))
    return _attempt(process, table.attempt)


def start_by_same_command(process: Process) -> object:
    """Make an attempt of one's own with the same candidates."""
    return _attempt(process, StartAttempt(_command(process)))


def _command(process: Process) -> OpenRun:
    table, hand = shared(process), process.hand
    if table.command is None:
        assert hand is not None
        spines, agent = process.parts.spines(), process.agent()
        identity = spines.identity(SESSION)
        opened = RunOpened(
            **spines.run(identity),
            cwd=WORKSPACE,
            workspace_identity=agent.workspace_identity,
            profile=agent.profile(),
            protocol=TOOL_BOUNDARY_PROTOCOL,
            incarnation_id=hand.incarnation_id,
            epoch=hand.epoch,
        )
        table.command = OpenRun(
            *_guard(process),
            opened=opened,
            message=UserMessage(**spines.run(identity), text="Pay."),
            admitted=RunAdmitted(
                **spines.session(SESSION),
                run_id=identity.run_id,
                turn_id=identity.turn_id,
                invocation_id=identity.invocation_id,
                kind=RunKind.TURN,
            ),
            session_opened=SessionOpened(**spines.session(SESSION)),
        )
    return table.command


def _attempt(process: Process, attempt: StartAttempt) -> object:
    assert process.hand is not None
    receipt, proof = complete(attempt(process.parts.async_ledger()))
    if not isinstance(proof, StartProof):
        return "no proof"
    opened = _command(process).opened
    return _drive(process, Begun(opened.identity, process.hand, receipt, proof, ()))


# ---- one call ----------------------------------------------------------------------------------------------------


def record_call(process: Process) -> object:
    """Begin a run and record a step with one call."""
    table = shared(process)
    begun = complete(process.parts.start_turn()(_hand(process), process.agent(), "Pay."))
    recorder = process.parts.run_agent().recorder(begun)
    step = process.ids.fresh(StepId)
    call = ToolCalled(**recorder.spine(), step_id=step, call_id=ToolCallId("call"), tool_name=TOOL, args={})
    ended = ModelStepCompleted(**recorder.spine(), step_id=step, finish_reason="tool_calls")
    complete(recorder.record_step((call, ended)))
    table.call, table.recorder = call, recorder
    return "recorded"


def dispatch(process: Process) -> object:
    """T1, the effect, T2."""
    table = shared(process)
    _wait(lambda: table.recorder)
    assert table.recorder is not None
    assert table.call is not None
    bound = process.catalog.bind(TOOL, {})
    assert isinstance(bound, BoundCall)
    t1 = ToolDispatched(
        **table.recorder.spine(),
        operation_id=process.ids.fresh(OperationId),
        call_id=table.call.call_id,
        tool_name=TOOL,
        args_hash=args_hash(TOOL, {}),
        contract=bound.contract,
        incarnation_id=table.recorder.owned.incarnation_id,
        life=bound.life,
    )
    complete(table.recorder.prepare(t1))
    process.world.stands(process.seen, f"effect {TOOL}")
    assert process.world.rules is not None
    process.world.rules.acts(Effect(t1.operation_id, TOOL))
    table.dispatch = t1
    return answer(process)


def answer(process: Process) -> object:
    """T2 of what was dispatched."""
    table = shared(process)
    _wait(lambda: table.dispatch)
    assert table.recorder is not None
    assert table.call is not None
    assert table.dispatch is not None
    said = prepare_result("done", effect=Said.DONE)
    complete(table.recorder.outcome(response_of(table.recorder.spine(), table.call, table.dispatch.operation_id, said)))
    return "answered"


def end(process: Process) -> object:
    """End the run as completed."""
    table = shared(process)
    _wait(lambda: table.recorder)
    assert table.recorder is not None
    complete(table.recorder.end(RunStatus.COMPLETED))
    return "ended"
