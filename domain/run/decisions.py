"""What may be written into a run by its own execution, decided on its state. SPEC sections 7 and 8.

The order of checks is one for all: sealed, then legality. Retry and epoch are asked by the ledger before.
"""

from __future__ import annotations

from ..commands import Append, AppendLate, EndRun, OpenRun, RecordStep, RefuseCall
from ..decision import Decision, Refusal
from ..events.event import Event
from ..events.model import ModelStepCompleted
from ..events.outside import PermissionClosed, PermissionDecided, PermissionRequested
from ..events.run import RunEnded, RunStatus
from ..events.session import EffectWatched
from ..events.tool import Effect, RecoveryMode, ToolCalled, ToolResponded
from ..identifiers import EventId, derive_id
from ..operation.repeat_guard import arguments_only_hash
from ..operation.state import Operation, Phase, operation_of_call, operations_of
from ..reasons import ResponseCode, WriteRefusal
from ..sentences import SentenceId, render
from ..session.decisions import admit_turn, take_inbox
from ..session.state import Session
from .state import Run


def sealed(run: Run) -> Refusal | None:
    """Refuse what needs an open run: not begun, claimed for good, or ended (a normal end of a race, F3)."""
    if run.opening is None:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "the run was never opened")
    if run.claimed is not None:
        return Refusal(WriteRefusal.RUN_CLAIMED, f"the run was claimed by continuation {run.claimed.target.run_id}")
    if run.ended is not None:
        return Refusal(WriteRefusal.RUN_SEALED, f"the run has ended ({run.ended.status.value})")
    return None


def open_run(session: Session, head: Run | None, run: Run, command: OpenRun) -> Decision:
    """Admit and open an ordinary run with its user message, taking the session's inbox over. SPEC section 5."""
    if run.opening is not None:
        return Refusal(WriteRefusal.DUPLICATE_EVENT_ID, f"run {command.opened.run_id} exists")
    admission = admit_turn(session, head, command.session_opened, command.admitted)
    if isinstance(admission, Refusal):
        return admission
    taken, messages = take_inbox(session, command.opened)
    return (*admission, *taken, command.opened, command.message, *command.host_messages, *messages)


def append(run: Run, command: Append) -> Decision:
    """Write ordinary facts; permissions only in their order."""
    if refusal := sealed(run):
        return refusal
    for fact in command.facts:
        if isinstance(fact, PermissionRequested | PermissionDecided) and (refusal := _permission(run, fact)):
            return refusal
    return command.facts


def _permission(run: Run, fact: PermissionRequested | PermissionDecided) -> Refusal | None:
    known = run.permissions.get(fact.request_id)
    if isinstance(fact, PermissionRequested):
        return (
            Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"permission {fact.request_id} exists") if known else None
        )
    if known is None or not known.open:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"permission {fact.request_id} is not open")
    return None


def record_step(run: Run, command: RecordStep) -> Decision:
    """Write one completed model step: it ends with its completion, and its call ids are fresh in the run."""
    if refusal := sealed(run):
        return refusal
    if not command.facts or not isinstance(command.facts[-1], ModelStepCompleted):
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "a model step ends with its completion")
    step_id, seen = command.facts[-1].step_id, set[str]()
    for fact in command.facts:
        if fact.step_id != step_id:
            return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "facts of two model steps in one commit")
        if isinstance(fact, ToolCalled):
            if fact.call_id in seen or operation_of_call(run, fact.call_id) is not None:
                return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"call id {fact.call_id} is used already")
            seen.add(fact.call_id)
    return command.facts


def refuse_call(run: Run, command: RefuseCall) -> Decision:
    """Answer a recorded call before T1; no dispatch may exist, and the effect is none. F2."""
    if refusal := sealed(run):
        return refusal
    response = command.response
    operation = operation_of_call(run, response.call_id)
    if operation is None or operation.phase is not Phase.CALLED:
        what = "was never recorded" if operation is None else "has its dispatch or answer"
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"call {response.call_id} {what}")
    if response.operation_id is not None or response.effect is not Effect.NONE:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "a refusal before T1 has no operation and no effect")
    return (response,)


def end_run(session: Session, run: Run, command: EndRun) -> Decision:
    """Close what was not dispatched, put uncertain effects on the session's watch list, write the terminal event. F9."""
    if refusal := sealed(run):
        return refusal
    operations = tuple(operations_of(run))
    if command.ended.status is RunStatus.COMPLETED:
        if undone := next((o for o in operations if o.phase in (Phase.CALLED, Phase.DISPATCHED)), None):
            return Refusal(WriteRefusal.OPERATION_OPEN, f"call {undone.call_id} ({undone.tool_name}) has no outcome")
        if job := next((job for job in run.jobs.values() if not job.detached), None):
            return Refusal(WriteRefusal.OPERATION_OPEN, f"background job {job.handle_id} still runs")
    closings = _closings(operations, command) if run.opening and run.opening.protocol else ()
    permissions = _permission_closings(run, command.ended) if command.stopped_by is not None else ()
    return (*closings, *permissions, command.ended, *_watched(session, operations, command.ended))


def _closings(operations: tuple[Operation, ...], command: EndRun) -> tuple[ToolResponded, ...]:
    ended = command.ended
    return tuple(
        ToolResponded(
            event_id=EventId(derive_id(ended.event_id, "close", operation.call_id)),
            session_id=ended.session_id,
            occurred_at=ended.occurred_at,
            run_id=ended.run_id,
            turn_id=ended.turn_id,
            invocation_id=ended.invocation_id,
            call_id=operation.call_id,
            tool_name=operation.tool_name,
            result=_not_executed(command),
            is_error=True,
            effect=Effect.NONE,
            code=ResponseCode.NOT_EXECUTED_INTERRUPTED,
        )
        for operation in operations
        if operation.phase is Phase.CALLED
    )


def _not_executed(command: EndRun) -> str:
    if command.stopped_by is not None:
        return render(SentenceId.NOT_EXECUTED_CANCELLED, {"by": command.stopped_by})
    return render(SentenceId.NOT_EXECUTED_INTERRUPTED if command.ended.recovered else SentenceId.NOT_EXECUTED_ENDED)


def _permission_closings(run: Run, ended: RunEnded) -> tuple[PermissionClosed, ...]:
    return tuple(
        PermissionClosed(
            event_id=EventId(derive_id(ended.event_id, "permission", request_id)),
            session_id=ended.session_id,
            occurred_at=ended.occurred_at,
            run_id=ended.run_id,
            turn_id=ended.turn_id,
            invocation_id=ended.invocation_id,
            request_id=request_id,
            reason="run_stopped",
        )
        for request_id, permission in run.permissions.items()
        if permission.open
    )


def _watched(session: Session, operations: tuple[Operation, ...], ended: RunEnded) -> tuple[EffectWatched, ...]:
    return tuple(
        EffectWatched(
            event_id=EventId(derive_id(ended.event_id, "watch", dispatch.operation_id)),
            session_id=ended.session_id,
            occurred_at=ended.occurred_at,
            operation_id=dispatch.operation_id,
            run_id=ended.run_id,
            tool_name=dispatch.tool_name,
            args_hash=dispatch.args_hash,
            arguments_only_hash=arguments_only_hash(operation.args),
            has_arguments=bool(operation.args),
            mode=dispatch.contract.mode,
            status=status,
            idempotency_key=dispatch.idempotency_key,
        )
        for operation in operations
        if (dispatch := operation.dispatch) is not None
        and (status := operation.uncertainty) is not None
        and dispatch.contract.mode is not RecoveryMode.REPLAY_SAFE
        and dispatch.operation_id not in session.watched
    )


def append_late(run: Run, command: AppendLate) -> Decision:
    """Write what may follow the terminal event: run ended, not claimed."""
    if run.claimed is not None:
        return Refusal(WriteRefusal.RUN_CLAIMED, f"the run was claimed by continuation {run.claimed.target.run_id}")
    if run.ended is None:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "the run has not ended; append it as an ordinary fact")
    fact = command.fact
    if isinstance(fact, PermissionDecided) and (refusal := _permission(run, fact)):
        return refusal
    inbox: tuple[Event, ...] = tuple(event for event in (command.grant, command.notice) if event is not None)
    return (fact, *inbox)
