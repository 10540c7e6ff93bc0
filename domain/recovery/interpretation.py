"""What the recovery facts of one operation amount to: a settlement, or the rule that they break. SPEC section 10."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ..events.tool import Disposition, Effect, Observation, RecoveryMode, Statement
from .bundle_rules import BundleRule, broken_rule
from .facts import Attested, Decided, Dispatched, Reconciled, RedeliveryStarted
from .operation_record import OperationRecord

_STATEMENTS = {Statement.COMPLETED.value: Statement.COMPLETED, Statement.NOT_EXECUTED.value: Statement.NOT_EXECUTED}


class Settled(NamedTuple):
    """A valid bundle or attestation; with both, the attestation speaks, for it superseded the parked bundle.

    Attributes:
        disposition: what the bundle decided, None without one.
        reason: the bundle's reason.
        statement: what a person attested, None where nobody did.
        answered_before: the statement is about a response that was there; it changes what is known of the effect only.
    """

    disposition: Disposition | None = None
    reason: str | None = None
    statement: Statement | None = None
    answered_before: bool = False


class _Tail(NamedTuple):
    """The recovery facts by kind, each with its sequence; statements without those that only declare it over."""

    redeliveries: list[tuple[int, RedeliveryStarted]]
    observations: list[tuple[int, Reconciled]]
    decisions: list[tuple[int, Decided]]
    statements: list[tuple[int, Attested]]


def interpret(record: OperationRecord) -> Settled | BundleRule | None:
    """Judge the recovery facts of an operation as they stand.

    Returns:
        The settlement; the rule that is broken; or None where the facts settle nothing (none at all, a redelivery
        under way, a statement that it is over), so that call, dispatch and response speak alone.
    """
    if record.recovery is None:
        return None
    tail = _tail(record)
    if not (tail.redeliveries or tail.observations or tail.decisions or tail.statements):
        return None
    if record.call is None or record.dispatch is None:
        return BundleRule.ONE_OBSERVATION_ONE_DECISION
    if len(tail.statements) > 1:
        return BundleRule.ATTESTED_ONCE
    if broken := _broken_by_redelivery(record, record.dispatch, tail):
        return broken
    attested_at, attested = tail.statements[0] if tail.statements else (0, None)
    if not tail.observations and not tail.decisions:
        if attested is not None:
            return _attested(record, record.dispatch, attested_at, attested, None)
        # A redelivery alone: its outcome comes as a bundle, so a bare response beside it is of unknown origin.
        return None if record.response is None else BundleRule.ONE_OBSERVATION_ONE_DECISION
    if len(tail.observations) != 1 or len(tail.decisions) != 1:
        return BundleRule.ONE_OBSERVATION_ONE_DECISION
    (observed_at, observed), (decided_at, decided) = tail.observations[0], tail.decisions[0]
    outcome = record.response
    outcome_at = record.response_at
    if attested is not None and outcome_at > attested_at:  # this response is the attestation's
        outcome, outcome_at = None, 0
    if broken := broken_rule(record.call, record.dispatch, observed, outcome, decided):
        return broken
    order = [record.call_at, record.dispatch_at, observed_at, *([outcome_at] if outcome else []), decided_at]
    if any(earlier >= later for earlier, later in pairwise(order)):
        return BundleRule.FACTS_IN_CAUSAL_ORDER
    if attested is not None:
        if attested_at < decided_at:
            return BundleRule.FACTS_IN_CAUSAL_ORDER
        return _attested(record, record.dispatch, attested_at, attested, decided)
    return Settled(Disposition(decided.disposition), decided.reason)


def _tail(record: OperationRecord) -> _Tail:
    tail = _Tail([], [], [], [])
    for at, fact in record.recovery or ():
        match fact:
            case RedeliveryStarted():
                tail.redeliveries.append((at, fact))
            case Reconciled():
                tail.observations.append((at, fact))
            case Decided():
                tail.decisions.append((at, fact))
            case Attested(statement=Statement.OVER):
                pass
            case Attested():
                tail.statements.append((at, fact))
    return tail


def _broken_by_redelivery(record: OperationRecord, dispatch: Dispatched, tail: _Tail) -> BundleRule | None:
    observed_at = tail.observations[0][0] if tail.observations else 0
    if tail.redeliveries and dispatch.mode != RecoveryMode.IDEMPOTENT:
        return BundleRule.REDELIVERY_IS_IDEMPOTENT
    settled = [at for at in (record.response_at, observed_at, *(at for at, _ in tail.statements)) if at]
    if tail.redeliveries and settled and tail.redeliveries[-1][0] > min(settled):
        return BundleRule.FACTS_IN_CAUSAL_ORDER
    redelivered = any(fact.observation == Observation.REDELIVERED for _, fact in tail.observations)
    if redelivered and not tail.redeliveries:
        return BundleRule.REDELIVERY_WAS_STARTED
    return None


def _attested(
    record: OperationRecord, dispatch: Dispatched, attested_at: int, attested: Attested, decided: Decided | None
) -> Settled | BundleRule:
    """A statement that stands alone, or after a valid bundle that `decided`."""
    statement = _STATEMENTS.get(attested.statement)
    response = record.response
    if statement is None:
        return BundleRule.ATTESTATION_IS_CALLED_FOR
    if attested.identity != dispatch.identity:
        return BundleRule.FACTS_OF_ONE_EXECUTION
    if response is not None and record.response_at < attested_at:
        # Already answered: history is not rewritten, the statement only says what the effect was.
        if response.effect != Effect.UNKNOWN:
            return BundleRule.ATTESTATION_IS_CALLED_FOR
        if attested.supersedes not in {None, response.event_id}:
            return BundleRule.ATTESTATION_NAMES_WHAT_IT_SUPERSEDES
        disposition = None if decided is None else Disposition.COMPLETED
        return Settled(disposition, statement=statement, answered_before=True)
    expected = {None, dispatch.event_id} if decided is None else {decided.event_id}
    if attested.supersedes not in expected:
        return BundleRule.ATTESTATION_NAMES_WHAT_IT_SUPERSEDES
    if response is None:
        return BundleRule.ATTESTATION_HAS_RESPONSE
    not_executed = statement is Statement.NOT_EXECUTED
    fits = response.effect == Effect.NONE and response.is_error if not_executed else response.effect == Effect.DONE
    return Settled(statement=statement) if fits else BundleRule.ATTESTED_RESPONSE_MATCHES
