"""The views beside the events: a pure function from one sealed event to the rows that it changes. SPEC section 7.

Online writing and rebuilding use this one function. Rows are partial upserts. Each column is written by events of one
stream only, and in that stream's order, so streams may be rebuilt in any order and give equal rows.
"""

from __future__ import annotations

from .events import model, outside, run, session, tool
from .operation.rows import operation_rows
from .projection_tables import TABLES, Column, Row, Table
from .sealing import SealedEvent

__all__ = ["TABLES", "Column", "Row", "Table", "rows_of"]


def rows_of(sealed: SealedEvent) -> tuple[Row, ...]:
    """The rows that one event changes; none for events that no view shows."""
    event = sealed.event
    match event:
        case (
            tool.ToolDispatched()
            | tool.ToolResponded()
            | tool.ToolRedeliveryStarted()
            | tool.ToolReconciled()
            | tool.ToolRecoveryDecided()
            | tool.ToolAttested()
        ):
            return operation_rows(sealed, event)
        case session.SessionOpened():
            return (Row("sessions", {"session_id": event.session_id, "opened_at": event.occurred_at}),)
        case session.RunAdmitted():
            return (
                Row(
                    "sessions",
                    {
                        "session_id": event.session_id,
                        "head_run_id": event.run_id,
                        "head_kind": event.kind.value,
                        "head_admitted_at": event.occurred_at,
                        "head_sequence": sealed.sequence,
                    },
                ),
                Row(
                    "runs",
                    {
                        "run_id": event.run_id,
                        "session_id": event.session_id,
                        "turn_id": event.turn_id,
                        "invocation_id": event.invocation_id,
                        "kind": event.kind.value,
                        "claim_id": event.claim_id,
                        "admitted_sequence": sealed.sequence,
                        "admitted_at": event.occurred_at,
                    },
                ),
            )
        case session.RunAbandoned():
            return (Row("runs", {"run_id": event.run_id, "abandoned_by": event.by}),)
        case session.EffectWatched():
            watched: dict[str, Column] = {"watched": event.status.value, "cleared_by": None}
            return (Row("operations", {"operation_id": event.operation_id, **watched}),)
        case session.EffectCleared():
            return (Row("operations", {"operation_id": event.operation_id, "cleared_by": event.by.value}),)
        case run.RunOpened():
            parents = {"parent_run_id": event.parent_run_id, "parent_operation_id": event.parent_operation_id}
            return (Row("runs", {**_opened(event), **parents}),)
        case run.ContinuationStarted():
            started: dict[str, Column] = {
                "claim_id": event.claim_id,
                "started_kind": event.kind.value,
                "started_event_id": event.event_id,
            }
            return (Row("runs", _opened(event)), Row("continuations", started))
        case model.UserMessage():
            return () if event.steering else (_turn(event),)
        case run.CancelRequested():
            return (Row("runs", {"run_id": event.run_id, "cancel_requested_by": event.by}),)
        case run.RunEnded():
            ended: dict[str, Column] = {
                "run_id": event.run_id,
                "ended_at": event.occurred_at,
                "ended_event_id": event.event_id,
                "status": event.status.value,
                "failure_class": event.failure_class,
                "recovered": int(event.recovered),
            }
            return (Row("runs", ended),)
        case run.RunClaimed():
            return _claim_rows(event)
        case outside.PermissionRequested() | outside.PermissionDecided() | outside.PermissionClosed():
            return (_permission(event),)
        case _:
            return ()


def _opened(event: run.RunOpened | run.ContinuationStarted) -> dict[str, Column]:
    return {
        "run_id": event.run_id,
        "session_id": event.session_id,
        "turn_id": event.turn_id,
        "invocation_id": event.invocation_id,
        "opened_at": event.occurred_at,
        "opened_event_id": event.event_id,
        "cwd": event.cwd,
        "workspace_identity": event.workspace_identity,
        "provider": event.profile.provider,
        "model": event.profile.model,
        "protocol": event.protocol,
        "incarnation_id": event.incarnation_id,
        "epoch": event.epoch,
    }


def _turn(event: model.UserMessage) -> Row:
    return Row(
        "turns",
        {
            "turn_id": event.turn_id,
            "run_id": event.run_id,
            "session_id": event.session_id,
            "user_event_id": event.event_id,
            "user_text_length": len(event.text),
            "started_at": event.occurred_at,
        },
    )


def _claim_rows(event: run.RunClaimed) -> tuple[Row, ...]:
    source = event.segments[-1]
    return (
        Row(
            "runs",
            {"run_id": event.run_id, "claimed_by_claim_id": event.claim_id, "claimed_by_run_id": event.target.run_id},
        ),
        Row(
            "continuations",
            {
                "claim_id": event.claim_id,
                "session_id": event.session_id,
                "source_run_id": event.run_id,
                "source_high_water": source.high_water,
                "source_digest": source.digest,
                "boundary_digest": event.boundary_digest,
                "target_run_id": event.target.run_id,
                "trigger": event.trigger.value,
                "claimed_event_id": event.event_id,
                "claimed_at": event.occurred_at,
            },
        ),
    )


def _permission(event: outside.PermissionRequested | outside.PermissionDecided | outside.PermissionClosed) -> Row:
    match event:
        case outside.PermissionRequested():
            values: dict[str, Column] = {
                "request_id": event.request_id,
                "session_id": event.session_id,
                "run_id": event.run_id,
                "call_id": event.call_id,
                "tool_name": event.tool_name,
                "args_hash": event.args_hash,
                "reason": event.reason,
                "requested_event_id": event.event_id,
            }
        case outside.PermissionDecided():
            values = {
                "request_id": event.request_id,
                "approved": int(event.approved),
                "decided_by": event.decided_by,
                "decided_event_id": event.event_id,
            }
        case outside.PermissionClosed():
            values = {"request_id": event.request_id, "closed_event_id": event.event_id}
    return Row("permissions", values)
