"""The views beside the events: a pure function from one sealed event to the rows that it changes. SPEC section 7.

Online writing and rebuilding use this one function. Rows are partial upserts. Each column is written by events of one stream
only, and in that stream's order, so streams may be rebuilt in any order and give equal rows. Every row names the event that made it last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from .events import model, outside, run, session, tool
from .sealing import SealedEvent

Column: TypeAlias = str | int | None


class Row(NamedTuple):
    """A partial upsert: the columns that an event sets in the row with this key (all key columns are in `values`)."""

    table: str
    values: Mapping[str, Column]


class Table(NamedTuple):
    """A view: its key columns first, then the rest, each with its SQL type."""

    key: tuple[str, ...]
    columns: Mapping[str, str]


def _table(key: str, columns: str) -> Table:
    named = {}
    for part in f"{key} {columns}".split():
        name, _, kind = part.partition(":")
        named[name] = "INTEGER" if kind == "int" else "TEXT"
    return Table(tuple(part.partition(":")[0] for part in key.split()), named)


TABLES: Mapping[str, Table] = {
    "sessions": _table("session_id", "opened_at head_run_id head_kind head_admitted_at head_sequence:int"),
    "runs": _table(
        "run_id",
        "session_id turn_id invocation_id kind claim_id admitted_sequence:int admitted_at abandoned_by opened_at"
        " opened_event_id cwd workspace_identity provider model protocol incarnation_id epoch:int parent_run_id parent_operation_id cancel_requested_by ended_at ended_event_id status"
        " failure_class recovered:int claimed_by_claim_id claimed_by_run_id",
    ),
    "turns": _table("turn_id run_id", "session_id user_event_id user_text_length:int started_at"),
    "operations": _table(
        "operation_id",
        "session_id run_id call_id tool_name mode life incarnation_id args_hash dispatched_sequence:int dispatched_at dispatch_event_id"
        " outcome_event_id outcome_is_error:int effect redeliveries_event_id observation decision reason decision_event_id attestation"
        " attestation_event_id cleared_by",
    ),
    "operation_journal": _table("run_id sequence:int", "operation_id entry event_id occurred_at"),
    "permissions": _table(
        "request_id",
        "session_id run_id call_id tool_name args_hash reason requested_event_id approved:int decided_by decided_event_id closed_event_id",
    ),
    "continuations": _table(
        "claim_id",
        "session_id source_run_id source_high_water:int source_digest boundary_digest target_run_id trigger claimed_event_id claimed_at"
        " started_kind started_event_id ended_status ended_event_id",
    ),
}
"""Every projection of SPEC section 7."""


def _journal(
    sealed: SealedEvent,
    event: tool.ToolDispatched
    | tool.ToolResponded
    | tool.ToolRedeliveryStarted
    | tool.ToolReconciled
    | tool.ToolRecoveryDecided
    | tool.ToolAttested,
    entry: str,
) -> Row:
    return Row(
        "operation_journal",
        {
            "run_id": event.run_id,
            "sequence": sealed.sequence,
            "operation_id": event.operation_id,
            "entry": entry,
            "event_id": event.event_id,
            "occurred_at": event.occurred_at,
        },
    )


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


def rows_of(sealed: SealedEvent) -> tuple[Row, ...]:
    """The rows that one event changes; none for events that no view shows."""
    event = sealed.event
    match event:
        case tool.ToolDispatched():
            return (
                Row(
                    "operations",
                    {
                        "operation_id": event.operation_id,
                        "session_id": event.session_id,
                        "run_id": event.run_id,
                        "call_id": event.call_id,
                        "tool_name": event.tool_name,
                        "mode": event.contract.mode.value,
                        "life": event.life.value,
                        "incarnation_id": event.incarnation_id,
                        "args_hash": event.args_hash,
                        "dispatched_sequence": sealed.sequence,
                        "dispatched_at": event.occurred_at,
                        "dispatch_event_id": event.event_id,
                    },
                ),
                _journal(sealed, event, "dispatched"),
            )
        case tool.ToolResponded():
            if event.operation_id is None:
                return ()
            outcome: dict[str, Column] = {
                "operation_id": event.operation_id,
                "outcome_event_id": event.event_id,
                "outcome_is_error": int(event.is_error),
                "effect": event.effect.value,
            }
            return (Row("operations", outcome), _journal(sealed, event, "responded"))
        case tool.ToolRedeliveryStarted():
            return (
                Row("operations", {"operation_id": event.operation_id, "redeliveries_event_id": event.event_id}),
                _journal(sealed, event, "redelivery_started"),
            )
        case tool.ToolReconciled():
            return (
                Row("operations", {"operation_id": event.operation_id, "observation": event.observation.value}),
                _journal(sealed, event, "reconciled"),
            )
        case tool.ToolRecoveryDecided():
            decided: dict[str, Column] = {
                "operation_id": event.operation_id,
                "decision": event.disposition.value,
                "reason": event.reason,
                "decision_event_id": event.event_id,
            }
            return (Row("operations", decided), _journal(sealed, event, "recovery_decided"))
        case tool.ToolAttested():
            attested: dict[str, Column] = {
                "operation_id": event.operation_id,
                "attestation": event.statement.value,
                "attestation_event_id": event.event_id,
            }
            return (Row("operations", attested), _journal(sealed, event, "attested"))
        case _:
            return _session_and_run_rows(sealed)


def _session_and_run_rows(sealed: SealedEvent) -> tuple[Row, ...]:
    event = sealed.event
    match event:
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
