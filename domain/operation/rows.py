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
Entry: TypeAlias = tuple[str, Callable[[SealedEvent, Any], dict[str, Column]]]
"""What a fact is called in the journal, and the columns of the operation that it sets."""


def operation_rows(sealed: SealedEvent, event: OperationFact) -> tuple[Row, ...]:
    """The rows that one fact changes; none for an answer that was made before T1.

    Args:
        sealed: the place of the fact.
        event: the fact itself.
    """
    operation = operation_row(sealed, event)
    if operation is None:
        return ()
    journal: dict[str, Column] = {
        "run_id": event.run_id,
        "sequence": sealed.sequence,
        "operation_id": event.operation_id,
        "entry": _ENTRIES[type(event)][0],
        "event_id": event.event_id,
        "occurred_at": event.occurred_at,
    }
    return operation, Row("operation_journal", journal)


def operation_row(sealed: SealedEvent, event: OperationFact) -> Row | None:
    """What one fact changes of its operation's row; None for an answer that was made before T1."""
    operation_id = event.__dict__["operation_id"]  # much quicker than an attribute of a pydantic model: T2 passes here
    if operation_id is None:
        return None
    return Row("operations", {"operation_id": operation_id, **_ENTRIES[type(event)][1](sealed, event)})


def _dispatched(sealed: SealedEvent, event: ToolDispatched) -> dict[str, Column]:
    return {
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


RESPONDED_COLUMNS = ("outcome_event_id", "outcome_is_error", "effect")
"""What a response says of its operation."""


def responded_values(event: ToolResponded) -> tuple[Column, Column, Column]:
    """The values of `RESPONDED_COLUMNS`: T2 writes them and nothing else."""
    fields = event.__dict__
    return fields["event_id"], int(fields["is_error"]), fields["effect"]._value_


def _responded(_sealed: SealedEvent, event: ToolResponded) -> dict[str, Column]:
    return dict(zip(RESPONDED_COLUMNS, responded_values(event), strict=True))


def _redelivery_started(_sealed: SealedEvent, event: ToolRedeliveryStarted) -> dict[str, Column]:
    return {"redeliveries_event_id": event.event_id}


def _reconciled(_sealed: SealedEvent, event: ToolReconciled) -> dict[str, Column]:
    return {"observation": event.observation.value}


def _decided(_sealed: SealedEvent, event: ToolRecoveryDecided) -> dict[str, Column]:
    return {
        "decision": event.disposition.value,
        "reason": event.reason,
        "decision_event_id": event.event_id,
    }


def _attested(_sealed: SealedEvent, event: ToolAttested) -> dict[str, Column]:
    return {"attestation": event.statement.value, "attestation_event_id": event.event_id}


# By exact type: `isinstance` is slow on pydantic models, and T2 passes here.
_ENTRIES: Mapping[type[OperationFact], Entry] = {
    ToolDispatched: ("dispatched", _dispatched),
    ToolResponded: ("responded", _responded),
    ToolRedeliveryStarted: ("redelivery_started", _redelivery_started),
    ToolReconciled: ("reconciled", _reconciled),
    ToolRecoveryDecided: ("recovery_decided", _decided),
    ToolAttested: ("attested", _attested),
}
