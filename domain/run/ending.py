"""How a run ends: what is closed, what is watched, and the terminal event, in one commit. SPEC section 7, ending."""

from __future__ import annotations

from collections.abc import Iterable

from ..commands import EndRun
from ..decision import Decision, Refusal
from ..events.assembling import assembled
from ..events.derived import Derived, derived_id
from ..events.outside import PermissionClosed
from ..events.run import RunEnded, RunStatus
from ..events.tool import Effect, ToolResponded
from ..operation.state import Operation, Phase, operations_of
from ..operation.watch_list import uncertain
from ..reasons import ResponseCode, WriteRefusal
from ..sentences import SentenceId, render
from ..session.state import Session
from .kept_permissions import kept_permissions
from .seals import sealed
from .state import Run

_OPEN = frozenset({Phase.CALLED, Phase.DISPATCHED})


def end_run(session: Session, run: Run, command: EndRun, *, foreign: bool) -> Decision:
    """Close what was not dispatched, put uncertain effects on the session's watch list, write the terminal event. F9.

    What a person has decided of a call that is closed so is kept for the next run, unless a person stopped this one.

    Args:
        session: the session's state.
        run: the run's.
        command: the terminal event, and whether a person stopped the run.
        foreign: the store cannot vouch that facts are complete, so no call is known not to have been dispatched.
    """
    if refusal := sealed(run):
        return refusal
    operations = tuple(operations_of(run))
    if command.ended.status is RunStatus.COMPLETED and (refusal := _unfinished(run, operations)):
        return refusal
    proven = run.opening is not None and run.opening.protocol is not None and not foreign
    closed = [operation for operation in operations if operation.phase is Phase.CALLED] if proven else []
    closings = _closings(closed, command)
    stopped = command.stopped_by is not None
    permissions = _permission_closings(run, command.ended) if stopped else ()
    kept = () if stopped else kept_permissions(run, closed, command.ended)
    return (*closings, *permissions, command.ended, *uncertain(session, operations, command.ended), *kept)


def _unfinished(run: Run, operations: tuple[Operation, ...]) -> Refusal | None:
    if undone := next((o for o in operations if o.phase in _OPEN), None):
        return Refusal(WriteRefusal.OPERATION_OPEN, f"call {undone.call_id} ({undone.tool_name}) has no outcome")
    if job := next((job for job in run.jobs.values() if not job.detached), None):
        return Refusal(WriteRefusal.OPERATION_OPEN, f"background job {job.handle_id} still runs")
    return None


def _closings(closed: Iterable[Operation], command: EndRun) -> tuple[ToolResponded, ...]:
    ended, said = command.ended, _not_executed(command)
    return tuple(
        assembled(
            ToolResponded,
            {
                "event_id": derived_id(ended, Derived.CALL_CLOSED, position),
                "session_id": ended.session_id,
                "occurred_at": ended.occurred_at,
                "run_id": ended.run_id,
                "turn_id": ended.turn_id,
                "invocation_id": ended.invocation_id,
                "call_id": operation.call_id,
                "tool_name": operation.tool_name,
                "operation_id": None,
                "result": said,
                "is_error": True,
                "effect": Effect.NONE,
                "code": ResponseCode.NOT_EXECUTED_INTERRUPTED.value,
                "original_length": None,
                "original_digest": None,
            },
        )
        for position, operation in enumerate(closed)
    )


def _not_executed(command: EndRun) -> str:
    if command.stopped_by is not None:
        return render(SentenceId.NOT_EXECUTED_CANCELLED, {"by": command.stopped_by})
    return render(SentenceId.NOT_EXECUTED_INTERRUPTED if command.ended.recovered else SentenceId.NOT_EXECUTED_ENDED)


def _permission_closings(run: Run, ended: RunEnded) -> tuple[PermissionClosed, ...]:
    return tuple(
        PermissionClosed(
            event_id=derived_id(ended, Derived.PERMISSION_CLOSED, position),
            session_id=ended.session_id,
            occurred_at=ended.occurred_at,
            run_id=ended.run_id,
            turn_id=ended.turn_id,
            invocation_id=ended.invocation_id,
            request_id=permission.requested.request_id,
            reason="run_stopped",
        )
        for position, permission in enumerate(run.open_permissions)
    )
