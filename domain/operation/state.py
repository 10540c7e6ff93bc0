"""The operation aggregate: one tool call and its side effect, replayed from its run's stream. SPEC section 3.

It has no stream and no copy of its own: it is what the scanner's record and the run's call and dispatches amount to.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from ..events.event import Json, Timestamp, after
from ..events.session import WatchStatus
from ..events.tool import (
    Disposition,
    Effect,
    RecoveryMode,
    Statement,
    ToolCalled,
    ToolDispatched,
    ToolRedeliveryStarted,
)
from ..identifiers import OperationId, ToolCallId
from ..recovery.facts import Attested, Decided, RedeliveryStarted
from ..recovery.operation_record import OperationRecord
from ..run.state import Run
from .key_validity import why_invalid


class Phase(StrEnum):
    """Where the state machine called → dispatched → settled | parked stands."""

    CALLED = "called"
    DISPATCHED = "dispatched"
    SETTLED = "settled"
    PARKED = "parked"


class Operation(NamedTuple):
    """One tool call: what was asked, what was promised at T1, and how it stands."""

    record: OperationRecord
    run: Run

    @property
    def called(self) -> ToolCalled | None:
        """What the model asked for; None where only a dispatch is known, and once it is certain what came of it."""
        return self.run.calls.get(self.record.call_id)

    @property
    def deliveries(self) -> tuple[ToolDispatched | ToolRedeliveryStarted, ...]:
        """T1 and whatever was delivered again, in order."""
        record = self.record
        return () if record.operation_id is None else self.run.deliveries_of(record.operation_id)

    @property
    def call_id(self) -> ToolCallId:
        """The call's id within its invocation."""
        return ToolCallId(self.record.call_id)

    @property
    def tool_name(self) -> str:
        """The tool that the model asked for."""
        return self.record.tool_name

    @property
    def dispatch(self) -> ToolDispatched | None:
        """T1, None while the call was not dispatched."""
        operation_id = self.record.operation_id
        return None if operation_id is None else self.run.dispatches.get(operation_id)

    @property
    def operation_id(self) -> OperationId | None:
        """The side-effect attempt, None before T1."""
        return None if (dispatch := self.dispatch) is None else dispatch.operation_id

    @property
    def args_hash(self) -> str | None:
        """Computed from the call itself, None when its arguments were no strict JSON."""
        return None if self.record.call is None else self.record.call.args_hash

    @property
    def args(self) -> Json:
        """The arguments as they are stored, None once it is certain what came of the call."""
        return None if (called := self.called) is None else called.args

    @property
    def idempotency_key(self) -> str | None:
        """The key that T1 recorded, where its contract has one."""
        return None if (dispatch := self.dispatch) is None else dispatch.idempotency_key

    @property
    def key_valid_until(self) -> Timestamp | None:
        """Up to when that key means the same delivery, None where it has no bound that T1 recorded."""
        dispatch = self.dispatch
        if dispatch is None or dispatch.contract.key_valid_seconds is None:
            return None
        return after(dispatch.occurred_at, dispatch.contract.key_valid_seconds)

    def why_key_is_invalid(self, now: Timestamp) -> str | None:
        """Why the key may not be delivered again, None where it may, or where there is no T1."""
        dispatch = self.dispatch
        return None if dispatch is None else why_invalid(dispatch.occurred_at, self.key_valid_until, now)

    @property
    def mode(self) -> RecoveryMode | None:
        """The recovery mode that T1 recorded."""
        return None if (dispatch := self.dispatch) is None else dispatch.contract.mode

    @property
    def phase(self) -> Phase:
        """What the facts amount to."""
        record = self.record
        if record.response is not None:
            return Phase.SETTLED
        if record.dispatch is None:
            return Phase.CALLED
        return Phase.PARKED if record.recovery and self._parked else Phase.DISPATCHED

    @property
    def _parked(self) -> bool:
        recovery = self.record.recovery or []
        return any(isinstance(fact, Decided) and fact.disposition == Disposition.PARKED for _, fact in recovery)

    @property
    def attested(self) -> bool:
        """True when a person said what happened; that it is over says nothing of that."""
        recovery = self.record.recovery or []
        return any(isinstance(fact, Attested) and fact.statement != Statement.OVER for _, fact in recovery)

    @property
    def declared_over(self) -> int:
        """How many of its deliveries, from the first, a person has said to be over; later ones are not meant."""
        declared = 0
        begun = 1
        for _, fact in self.record.recovery or ():
            if isinstance(fact, RedeliveryStarted):
                begun += 1
            elif isinstance(fact, Attested) and fact.statement == Statement.OVER:
                declared = begun
        return declared

    @property
    def uncertainty(self) -> WatchStatus | None:
        """Why a repeat of its effect must not go unnoticed, None when the outcome is certain. F9."""
        response = self.record.response
        if response is not None:  # of most operations, and nothing else is looked at then
            return WatchStatus.UNKNOWN if response.effect == Effect.UNKNOWN and not self.attested else None
        match self.phase:
            case Phase.DISPATCHED:
                return WatchStatus.INDETERMINATE
            case Phase.PARKED:
                return WatchStatus.PARKED
            case _:
                return None


def operations_of(run: Run) -> Iterator[Operation]:
    """All tool calls of a run, in order of first appearance."""
    return (Operation(record, run) for record in run.tools.operations())


def unanswered_of(run: Run) -> Iterator[Operation]:
    """The calls without a response, in order; costs what is unanswered, not what was ever called."""
    return (Operation(record, run) for record in run.tools.unanswered())


def operation_of_call(run: Run, call_id: str) -> Operation | None:
    """The call with this id, None when it was never recorded."""
    record = run.tools.call(call_id)
    return None if record is None else tuple.__new__(Operation, (record, run))  # in half the time


def operation_by_id(run: Run, operation_id: str) -> Operation | None:
    """The operation that a dispatch bound to this id, None when there is none."""
    record = run.tools.operation(operation_id)
    return None if record is None else tuple.__new__(Operation, (record, run))  # in half the time
