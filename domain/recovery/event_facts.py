"""Our own events as facts for the scanner. SPEC section 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import canonical
from ..events.catalogue import AFTER_TERMINAL
from ..events.event import RunEvent
from ..events.run import ContinuationStarted, RunClaimed, RunEnded, RunOpened
from ..events.tool import (
    ToolAttested,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from ..identifiers import ExecutionIdentity
from .facts import (
    Attested,
    Called,
    Claimed,
    Decided,
    Dispatched,
    Ended,
    Fact,
    Opened,
    Ordinary,
    Reconciled,
    RedeliveryStarted,
    Responded,
)


def event_facts(event: RunEvent, like: ExecutionIdentity | None = None) -> Fact:
    """The fact that an event of a run is. Its arguments hash is computed here, from the arguments themselves.

    Args:
        event: the event.
        like: an identity to use again where the event has the same, so that the events of a run share one.
    """
    fields = event.__dict__  # much quicker than attributes of a pydantic model, and every event passes here
    spine: Sequence[str] = (fields["session_id"], fields["run_id"], fields["turn_id"], fields["invocation_id"])
    identity = like if like is not None and spine == like else ExecutionIdentity._make(spine)
    make = _MAKE.get(type(event))
    if make is None:
        # As calling the class would, in half the time, here and below.
        return tuple.__new__(Ordinary, (fields["event_id"], identity, event.topic in AFTER_TERMINAL, None))
    return make(event, identity)


def _opened(event: RunOpened | ContinuationStarted, identity: ExecutionIdentity) -> Fact:
    return Opened(event.event_id, identity, event.protocol)


def _ended(event: RunEnded, identity: ExecutionIdentity) -> Fact:
    return Ended(event.event_id, identity)


def _claimed(event: RunClaimed, identity: ExecutionIdentity) -> Fact:
    return Claimed(event.event_id, identity)


def _called(event: ToolCalled, identity: ExecutionIdentity) -> Fact:
    # Arguments that were kept as text were no strict JSON: they have no hash, and so no dispatch can match them.
    fields = event.__dict__
    name = fields["tool_name"]
    args_hash = canonical.args_hash(name, fields["args"]) if fields["args_text"] is None else None
    return tuple.__new__(Called, (fields["event_id"], identity, fields["call_id"], name, args_hash))


def _dispatched(event: ToolDispatched, identity: ExecutionIdentity) -> Fact:
    fields = event.__dict__
    return tuple.__new__(
        Dispatched,
        (
            fields["event_id"],
            identity,
            fields["operation_id"],
            fields["call_id"],
            fields["tool_name"],
            fields["args_hash"],
            fields["contract"].mode,
            None,
        ),
    )


def _responded(event: ToolResponded, identity: ExecutionIdentity) -> Fact:
    fields = event.__dict__
    return tuple.__new__(
        Responded,
        (
            fields["event_id"],
            identity,
            fields["call_id"],
            fields["tool_name"],
            fields["operation_id"],
            fields["is_error"],
            fields["effect"],
            None,
        ),
    )


def _redelivery_started(event: ToolRedeliveryStarted, identity: ExecutionIdentity) -> Fact:
    return RedeliveryStarted(event.event_id, identity, event.operation_id)


def _reconciled(event: ToolReconciled, identity: ExecutionIdentity) -> Fact:
    return Reconciled(event.event_id, identity, event.operation_id, event.observation)


def _decided(event: ToolRecoveryDecided, identity: ExecutionIdentity) -> Fact:
    return Decided(
        event.event_id,
        identity,
        event.operation_id,
        event.disposition,
        event.reason,
        tuple(event.evidence_event_ids),
        event.outcome_event_id,
    )


def _attested(event: ToolAttested, identity: ExecutionIdentity) -> Fact:
    return Attested(event.event_id, identity, event.operation_id, event.statement, event.supersedes)


_MAKE: Mapping[type[RunEvent], Callable[[Any, ExecutionIdentity], Fact]] = {
    RunOpened: _opened,
    ContinuationStarted: _opened,
    RunEnded: _ended,
    RunClaimed: _claimed,
    ToolCalled: _called,
    ToolDispatched: _dispatched,
    ToolResponded: _responded,
    ToolRedeliveryStarted: _redelivery_started,
    ToolReconciled: _reconciled,
    ToolRecoveryDecided: _decided,
    ToolAttested: _attested,
}
