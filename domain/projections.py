"""The views beside the events: a pure function from one sealed event to the rows that it changes. SPEC section 7.

Online writing and rebuilding use this one function. Rows are partial upserts. Each column is written by events of one
stream only, and in that stream's order, so streams may be rebuilt in any order and give equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .events import model, outside, run, session, tool
from .events.event import Event
from .operation.rows import operation_rows
from .projection_tables import TABLES, Column, Row, Table
from .sealing import SealedEvent

__all__ = ["TABLES", "TOPICS_WITH_ROWS", "Column", "Row", "Table", "rows_of"]


def rows_of(sealed: SealedEvent) -> tuple[Row, ...]:
    """The rows that one event changes; none for events that no view shows."""
    make = _ROWS.get(type(sealed.event))
    return () if make is None else make(sealed, sealed.event)


def _session_opened(_sealed: SealedEvent, event: session.SessionOpened) -> tuple[Row, ...]:
    return (Row("sessions", {"session_id": event.session_id, "opened_at": event.occurred_at}),)


def _run_admitted(sealed: SealedEvent, event: session.RunAdmitted) -> tuple[Row, ...]:
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


def _run_abandoned(_sealed: SealedEvent, event: session.RunAbandoned) -> tuple[Row, ...]:
    return (Row("runs", {"run_id": event.run_id, "abandoned_by": event.by}),)


def _effect_watched(_sealed: SealedEvent, event: session.EffectWatched) -> tuple[Row, ...]:
    watched: dict[str, Column] = {"watched": event.status.value, "cleared_by": None}
    return (Row("operations", {"operation_id": event.operation_id, **watched}),)


def _effect_cleared(_sealed: SealedEvent, event: session.EffectCleared) -> tuple[Row, ...]:
    return (Row("operations", {"operation_id": event.operation_id, "cleared_by": event.by.value}),)


def _run_opened(_sealed: SealedEvent, event: run.RunOpened) -> tuple[Row, ...]:
    parents = {"parent_run_id": event.parent_run_id, "parent_operation_id": event.parent_operation_id}
    return (Row("runs", {**_opened(event), **parents}),)


def _continuation_started(_sealed: SealedEvent, event: run.ContinuationStarted) -> tuple[Row, ...]:
    started: dict[str, Column] = {
        "claim_id": event.claim_id,
        "started_kind": event.kind.value,
        "started_event_id": event.event_id,
    }
    return (Row("runs", _opened(event)), Row("continuations", started))


def _cancel_requested(_sealed: SealedEvent, event: run.CancelRequested) -> tuple[Row, ...]:
    return (Row("runs", {"run_id": event.run_id, "cancel_requested_by": event.by}),)


def _run_ended(_sealed: SealedEvent, event: run.RunEnded) -> tuple[Row, ...]:
    ended: dict[str, Column] = {
        "run_id": event.run_id,
        "ended_at": event.occurred_at,
        "ended_event_id": event.event_id,
        "status": event.status.value,
        "failure_class": event.failure_class,
        "recovered": int(event.recovered),
    }
    return (Row("runs", ended),)


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


def _turn(_sealed: SealedEvent, event: model.UserMessage) -> tuple[Row, ...]:
    if event.steering:
        return ()
    turn: dict[str, Column] = {
        "turn_id": event.turn_id,
        "run_id": event.run_id,
        "session_id": event.session_id,
        "user_event_id": event.event_id,
        "user_text_length": len(event.text),
        "started_at": event.occurred_at,
    }
    return (Row("turns", turn),)


def _run_claimed(_sealed: SealedEvent, event: run.RunClaimed) -> tuple[Row, ...]:
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


def _permission_requested(_sealed: SealedEvent, event: outside.PermissionRequested) -> tuple[Row, ...]:
    requested: dict[str, Column] = {
        "request_id": event.request_id,
        "session_id": event.session_id,
        "run_id": event.run_id,
        "call_id": event.call_id,
        "tool_name": event.tool_name,
        "args_hash": event.args_hash,
        "reason": event.reason,
        "requested_event_id": event.event_id,
    }
    return (Row("permissions", requested),)


def _permission_decided(_sealed: SealedEvent, event: outside.PermissionDecided) -> tuple[Row, ...]:
    decided: dict[str, Column] = {
        "request_id": event.request_id,
        "approved": int(event.approved),
        "decided_by": event.decided_by,
        "decided_event_id": event.event_id,
    }
    return (Row("permissions", decided),)


def _permission_closed(_sealed: SealedEvent, event: outside.PermissionClosed) -> tuple[Row, ...]:
    return (Row("permissions", {"request_id": event.request_id, "closed_event_id": event.event_id}),)


# By exact type: `isinstance` is slow on pydantic models, and every event that is written passes here.
_ROWS: Mapping[type[Event], Callable[[SealedEvent, Any], tuple[Row, ...]]] = {
    tool.ToolDispatched: operation_rows,
    tool.ToolResponded: operation_rows,
    tool.ToolRedeliveryStarted: operation_rows,
    tool.ToolReconciled: operation_rows,
    tool.ToolRecoveryDecided: operation_rows,
    tool.ToolAttested: operation_rows,
    session.SessionOpened: _session_opened,
    session.RunAdmitted: _run_admitted,
    session.RunAbandoned: _run_abandoned,
    session.EffectWatched: _effect_watched,
    session.EffectCleared: _effect_cleared,
    run.RunOpened: _run_opened,
    run.ContinuationStarted: _continuation_started,
    run.CancelRequested: _cancel_requested,
    run.RunEnded: _run_ended,
    run.RunClaimed: _run_claimed,
    model.UserMessage: _turn,
    outside.PermissionRequested: _permission_requested,
    outside.PermissionDecided: _permission_decided,
    outside.PermissionClosed: _permission_closed,
}

TOPICS_WITH_ROWS: frozenset[str] = frozenset(kind.topic for kind in _ROWS)
"""Events of other topics make no row."""
