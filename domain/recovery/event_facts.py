"""Our own events as facts for the scanner. SPEC section 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    spine = (event.session_id, event.run_id, event.turn_id, event.invocation_id)
    identity = like if like is not None and spine == like else ExecutionIdentity._make(spine)
    make = _MAKE.get(type(event))
    if make is None:
        return Ordinary(event.event_id, identity, event.topic in AFTER_TERMINAL)
    return make(event, identity)


def _opened(event: RunOpened | ContinuationStarted, identity: ExecutionIdentity) -> Fact:
    return Opened(event.event_id, identity, event.protocol)


def _ended(event: RunEnded, identity: ExecutionIdentity) -> Fact:
    return Ended(event.event_id, identity)


def _claimed(event: RunClaimed, identity: ExecutionIdentity) -> Fact:
    return Claimed(event.event_id, identity)


def _called(event: ToolCalled, identity: ExecutionIdentity) -> Fact:
    # Arguments that were kept as text were no strict JSON: they have no hash, and so no dispatch can match them.
    args_hash = canonical.args_hash(event.tool_name, event.args) if event.args_text is None else None
    return Called(event.event_id, identity, event.call_id, event.tool_name, args_hash)


def _dispatched(event: ToolDispatched, identity: ExecutionIdentity) -> Fact:
    mode = event.contract.mode
    return Dispatched(
        event.event_id, identity, event.operation_id, event.call_id, event.tool_name, event.args_hash, mode
    )


def _responded(event: ToolResponded, identity: ExecutionIdentity) -> Fact:
    return Responded(
        event.event_id, identity, event.call_id, event.tool_name, event.operation_id, event.is_error, event.effect
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
