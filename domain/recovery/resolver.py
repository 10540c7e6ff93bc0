"""The one judge of operations: a pure function of a ledger's facts. SPEC R11 and section 9.

Planner, hosts and reconcilers take its verdicts and never combine facts themselves. Whether an operation is over is not
asked here.
"""

from __future__ import annotations

from ..events.tool import Disposition, Effect, Statement
from ..reasons import LedgerIssue, RecoveryReason, VerdictReason
from .bundle_rules import BundleRule
from .interpretation import Settled, interpret
from .operation_record import OperationRecord
from .scanner import Scanner
from .verdict import Reason, Resolution, SettlementOrigin, Verdict, VerdictStatus

_PRIORITY = (
    LedgerIssue.DUPLICATE_CALL,
    LedgerIssue.DUPLICATE_OPERATION,
    LedgerIssue.DUPLICATE_DISPATCH,
    LedgerIssue.DUPLICATE_RESPONSE,
    LedgerIssue.ORPHAN_RESPONSE,  # its call came after it
    LedgerIssue.CANONICAL_ARGS_HASH_CONFLICT,
    LedgerIssue.IDENTITY_CONFLICT,
    LedgerIssue.EVENT_ORDER_CONFLICT,
)
_EFFECTS = {effect.value: effect for effect in Effect}
# Before Python 3.12 a member of an enumeration is slow to look up, and most operations come to these.
_COMPLETED, _ANSWERED = VerdictStatus.COMPLETED, VerdictReason.MATCHING_RESPONSE
_BEFORE_T1, _AT_T2 = SettlementOrigin.PRE_T1_SYNTHETIC, SettlementOrigin.NORMAL_T2


def resolve(scanner: Scanner, *, foreign: bool) -> Resolution:
    """Judge every operation of a scanned ledger.

    Args:
        scanner: fed with the whole ledger.
        foreign: the store cannot vouch that facts are complete, so absence proves nothing (SPEC section 6).
    """
    verdicts = tuple(verdict_of(scanner, record, foreign=foreign) for record in scanner.operations())
    statuses = {verdict.status for verdict in verdicts}
    corrupt = scanner.has_corruption or VerdictStatus.CORRUPTION in statuses
    open_ = VerdictStatus.INDETERMINATE in statuses
    return Resolution(scanner.protocol, verdicts, tuple(scanner.issues), corrupt, open_ and not corrupt)


def verdict_of(scanner: Scanner, record: OperationRecord, *, foreign: bool) -> Verdict:
    """Judge one operation; O(1), for a writer that touches one. `foreign` as for `resolve`."""
    if issue := _corruption(record):
        return _verdict(record, VerdictStatus.CORRUPTION, issue)
    recovery = interpret(record)
    if isinstance(recovery, BundleRule):
        return _verdict(record, VerdictStatus.CORRUPTION, LedgerIssue.RECOVERY_FACT_CORRUPTION, broken_rule=recovery)
    if recovery is not None:
        return _settled(record, recovery)
    if record.response is not None:
        return _answered(record)
    if record.dispatch is not None:
        return _verdict(record, VerdictStatus.INDETERMINATE, VerdictReason.DISPATCH_WITHOUT_RESPONSE)
    if scanner.protocol is None or foreign or scanner.absence_unproven:
        return _verdict(record, VerdictStatus.INDETERMINATE, VerdictReason.LEGACY_DISPATCH_UNKNOWN)
    not_dispatched = VerdictStatus.DEFINITELY_NOT_DISPATCHED
    return _verdict(record, not_dispatched, VerdictReason.NEW_PROTOCOL_BEFORE_DISPATCH, effect=Effect.NONE)


def _corruption(record: OperationRecord) -> LedgerIssue | None:
    if record.call is None:
        return LedgerIssue.ORPHAN_RESPONSE if record.dispatch is None else LedgerIssue.ORPHAN_DISPATCH
    if record.codes:
        for code in _PRIORITY:
            if code in record.codes:
                return code
    response = record.response
    if response is not None and response.operation_id is not None and record.dispatch is None:
        return LedgerIssue.ORPHAN_RESPONSE  # it names an operation that was never dispatched
    return None


def _answered(record: OperationRecord) -> Verdict:
    origin = _BEFORE_T1 if record.dispatch is None else _AT_T2
    return _verdict(record, _COMPLETED, _ANSWERED, origin, _effect(record))


def _settled(record: OperationRecord, settled: Settled) -> Verdict:
    if settled.statement is not None:
        return _attested(record, settled, settled.statement)
    if settled.disposition is Disposition.PARKED:
        return _verdict(record, VerdictStatus.PARKED, RecoveryReason(str(settled.reason)), SettlementOrigin.RECOVERED)
    return _recovered(record)


def _recovered(record: OperationRecord) -> Verdict:
    reason = VerdictReason.RECOVERY_BUNDLE_COMPLETED
    return _verdict(record, VerdictStatus.COMPLETED, reason, SettlementOrigin.RECOVERED, _effect(record))


def _attested(record: OperationRecord, settled: Settled, statement: Statement) -> Verdict:
    executed = statement is Statement.COMPLETED
    effect = Effect.DONE if executed else Effect.NONE
    if settled.answered_before:
        answered = _recovered(record) if settled.disposition is Disposition.COMPLETED else _answered(record)
        return answered._replace(effect=effect)
    reason = VerdictReason.ATTESTED_COMPLETED if executed else VerdictReason.ATTESTED_NOT_EXECUTED
    return _verdict(record, VerdictStatus.COMPLETED, reason, SettlementOrigin.ATTESTED, effect)


def _effect(record: OperationRecord) -> Effect:
    return Effect.UNKNOWN if record.response is None else _EFFECTS.get(record.response.effect, Effect.UNKNOWN)


def _verdict(
    record: OperationRecord,
    status: VerdictStatus,
    reason: Reason,
    origin: SettlementOrigin | None = None,
    effect: Effect = Effect.UNKNOWN,
    broken_rule: BundleRule | None = None,
) -> Verdict:
    call, dispatch, response = record.call, record.dispatch, record.response
    return Verdict(
        record.call_id,
        record.tool_name,
        record.operation_id,
        status,
        reason,
        origin,
        effect,
        None if response is None else response.is_error,
        None if dispatch is None else dispatch.mode,
        None if call is None else call.event_id,
        None if dispatch is None else dispatch.event_id,
        None if response is None else response.event_id,
        tuple(fact.event_id for _, fact in record.recovery) if record.recovery else (),
        record.call_at,
        record.dispatch_at,
        broken_rule,
    )
