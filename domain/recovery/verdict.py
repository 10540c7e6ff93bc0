"""What the resolver says of a ledger and of each of its operations. SPEC section 9."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from ..events.tool import Effect
from ..reasons import LedgerIssue, RecoveryReason, VerdictReason
from .operation_record import Issue


class VerdictStatus(StrEnum):
    """How an operation stands."""

    COMPLETED = "completed"
    PARKED = "parked"
    DEFINITELY_NOT_DISPATCHED = "definitely_not_dispatched"
    INDETERMINATE = "indeterminate"
    CORRUPTION = "corruption"


class SettlementOrigin(StrEnum):
    """Which kind of fact settled an operation."""

    PRE_T1_SYNTHETIC = "pre_t1_synthetic"
    NORMAL_T2 = "normal_t2"
    RECOVERED = "recovered"
    ATTESTED = "attested"


Reason: TypeAlias = VerdictReason | RecoveryReason | LedgerIssue


class Verdict(NamedTuple):
    """How one tool call stands, why, and by which facts.

    Attributes:
        effect: what is known of the effect: `none` only where a fact or the protocol proves it.
        call_sequence: where the call stands, 0 when there is none; `dispatch_sequence` likewise.
        recovery_event_ids: redeliveries, observations, decisions and attestations, in order.
        broken_rule: for `recovery_fact_corruption`, the rule of SPEC section 10 that does not hold.
    """

    call_id: str
    tool_name: str
    operation_id: str | None
    status: VerdictStatus
    reason: Reason
    origin: SettlementOrigin | None = None
    effect: Effect = Effect.UNKNOWN
    is_error: bool | None = None
    mode: str | None = None
    call_event_id: str | None = None
    dispatch_event_id: str | None = None
    response_event_id: str | None = None
    recovery_event_ids: tuple[str, ...] = ()
    call_sequence: int = 0
    dispatch_sequence: int = 0
    broken_rule: str | None = None

    @property
    def is_settled(self) -> bool:
        """Whether a resume may go past it: completed, or proven never dispatched. SPEC R9."""
        return self.status in {VerdictStatus.COMPLETED, VerdictStatus.DEFINITELY_NOT_DISPATCHED}


class Resolution(NamedTuple):
    """The verdicts of one ledger.

    Attributes:
        verdicts: one per tool call, in order of first appearance.
        has_corruption: any issue, or any corrupt verdict: nothing here may be continued or written on.
        requires_reconciliation: sound, and something is indeterminate.
    """

    protocol: str | None
    verdicts: tuple[Verdict, ...]
    issues: tuple[Issue, ...]
    has_corruption: bool
    requires_reconciliation: bool
