"""The rows that a fact about a side effect changes: its operation's, and a line of the journal. SPEC section 7."""

from __future__ import annotations

from typing import TypeAlias

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


def operation_rows(sealed: SealedEvent, event: OperationFact) -> tuple[Row, ...]:
    """The rows that one fact changes; none for an answer that was made before T1.

    Args:
        sealed: the place of the fact.
        event: the fact itself.
    """
    if event.operation_id is None:
        return ()
    entry, columns = _entry(sealed, event)
    journal: dict[str, Column] = {
        "run_id": event.run_id,
        "sequence": sealed.sequence,
        "operation_id": event.operation_id,
        "entry": entry,
        "event_id": event.event_id,
        "occurred_at": event.occurred_at,
    }
    operation: dict[str, Column] = {"operation_id": event.operation_id, **columns}
    return (Row("operations", operation), Row("operation_journal", journal))


def _entry(sealed: SealedEvent, event: OperationFact) -> tuple[str, dict[str, Column]]:
    match event:
        case ToolDispatched():
            return "dispatched", {
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
            }
        case ToolResponded():
            return "responded", {
                "outcome_event_id": event.event_id,
                "outcome_is_error": int(event.is_error),
                "effect": event.effect.value,
            }
        case ToolRedeliveryStarted():
            return "redelivery_started", {"redeliveries_event_id": event.event_id}
        case ToolReconciled():
            return "reconciled", {"observation": event.observation.value}
        case ToolRecoveryDecided():
            return "recovery_decided", {
                "decision": event.disposition.value,
                "reason": event.reason,
                "decision_event_id": event.event_id,
            }
        case ToolAttested():
            return "attested", {
                "attestation": event.statement.value,
                "attestation_event_id": event.event_id,
            }
