"""The rows that a fact about a side effect changes: its operation's, and a line of the journal. SPEC section 7."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..events.tool import (
    ToolAttested,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from ..projection_tables import Column, Row
from ..sealing import SealedEvent

OperationFact: TypeAlias = (
    ToolDispatched | ToolResponded | ToolRedeliveryStarted | ToolReconciled | ToolRecoveryDecided | ToolAttested
)
Entry: TypeAlias = tuple[str, dict[str, Column]]
"""What the fact is called in the journal, and the columns of the operation that it sets."""


def operation_rows(sealed: SealedEvent, event: OperationFact) -> tuple[Row, ...]:
    """The rows that one fact changes; none for an answer that was made before T1.

    Args:
        sealed: the place of the fact.
        event: the fact itself.
    """
    fields = event.__dict__  # much quicker than attributes of a pydantic model: T1 and T2 pass here
    operation_id = fields["operation_id"]
    if operation_id is None:
        return ()
    entry, columns = _ENTRIES[type(event)](sealed, event)
    journal: dict[str, Column] = {
        "run_id": fields["run_id"],
        "sequence": sealed.sequence,
        "operation_id": operation_id,
        "entry": entry,
        "event_id": fields["event_id"],
        "occurred_at": fields["occurred_at"],
    }
    operation: dict[str, Column] = {"operation_id": operation_id, **columns}
    new = tuple.__new__  # as calling the class would, in half the time
    return (new(Row, ("operations", operation)), new(Row, ("operation_journal", journal)))


def _dispatched(sealed: SealedEvent, event: ToolDispatched) -> Entry:
    fields = event.__dict__
    return "dispatched", {
        "session_id": fields["session_id"],
        "run_id": fields["run_id"],
        "call_id": fields["call_id"],
        "tool_name": fields["tool_name"],
        "mode": fields["contract"].mode._value_,
        "life": fields["life"]._value_,
        "incarnation_id": fields["incarnation_id"],
        "args_hash": fields["args_hash"],
        "dispatched_sequence": sealed.sequence,
        "dispatched_at": fields["occurred_at"],
        "dispatch_event_id": fields["event_id"],
    }


def _responded(_sealed: SealedEvent, event: ToolResponded) -> Entry:
    fields = event.__dict__
    return "responded", {
        "outcome_event_id": fields["event_id"],
        "outcome_is_error": int(fields["is_error"]),
        "effect": fields["effect"]._value_,
    }


def _redelivery_started(_sealed: SealedEvent, event: ToolRedeliveryStarted) -> Entry:
    return "redelivery_started", {"redeliveries_event_id": event.event_id}


def _reconciled(_sealed: SealedEvent, event: ToolReconciled) -> Entry:
    return "reconciled", {"observation": event.observation.value}


def _decided(_sealed: SealedEvent, event: ToolRecoveryDecided) -> Entry:
    return "recovery_decided", {
        "decision": event.disposition.value,
        "reason": event.reason,
        "decision_event_id": event.event_id,
    }


def _attested(_sealed: SealedEvent, event: ToolAttested) -> Entry:
    return "attested", {"attestation": event.statement.value, "attestation_event_id": event.event_id}


# By exact type: `isinstance` is slow on pydantic models, and T1 and T2 pass here.
_ENTRIES: Mapping[type[OperationFact], Callable[[SealedEvent, Any], Entry]] = {
    ToolDispatched: _dispatched,
    ToolResponded: _responded,
    ToolRedeliveryStarted: _redelivery_started,
    ToolReconciled: _reconciled,
    ToolRecoveryDecided: _decided,
    ToolAttested: _attested,
}
