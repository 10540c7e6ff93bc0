"""Ledgers as the recovery tests tell them: facts with ids that can be read, of one operation unless said otherwise."""

from __future__ import annotations

from safepoint.domain.events.run import TOOL_BOUNDARY_PROTOCOL
from safepoint.domain.events.tool import Disposition, Effect, Observation, RecoveryMode, Statement
from safepoint.domain.identifiers import ExecutionIdentity, InvocationId, RunId, SessionId, TurnId
from safepoint.domain.reasons import RecoveryReason
from safepoint.domain.recovery.facts import (
    Attested,
    Called,
    Claimed,
    Conflicted,
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
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.domain.recovery.verdict import Verdict

ME = ExecutionIdentity(SessionId("s"), RunId("r"), TurnId("t"), InvocationId("i"))
OTHER_TURN = ME._replace(turn_id=TurnId("t2"))
OTHER_INVOCATION = ME._replace(invocation_id=InvocationId("i2"))
HASH = "h"


def opened(protocol: str | None = TOOL_BOUNDARY_PROTOCOL) -> Opened:
    return Opened("open", ME, protocol)


def text(event_id: str = "text", *, late: bool = False, identity: ExecutionIdentity = ME) -> Ordinary:
    return Ordinary(event_id, identity, late)


def ended() -> Ended:
    return Ended("end", ME)


def claimed() -> Claimed:
    return Claimed("claim", ME)


def conflicted() -> Conflicted:
    return Conflicted("two-lanes", ME)


def called(event_id: str = "call", call_id: str = "c", *, tool: str = "Write", args_hash: str | None = HASH) -> Called:
    return Called(event_id, ME, call_id, tool, args_hash)


def dispatched(
    event_id: str = "dispatch",
    call_id: str = "c",
    operation_id: str = "o",
    *,
    mode: str = RecoveryMode.RECONCILE,
    tool: str = "Write",
    args_hash: str = HASH,
    identity: ExecutionIdentity = ME,
) -> Dispatched:
    return Dispatched(event_id, identity, operation_id, call_id, tool, args_hash, mode)


def responded(
    event_id: str = "response",
    call_id: str = "c",
    operation_id: str | None = "o",
    *,
    is_error: bool = False,
    effect: str = Effect.DONE,
    tool: str = "Write",
) -> Responded:
    return Responded(event_id, ME, call_id, tool, operation_id, is_error, effect)


def refused() -> Responded:
    """A response that was made before T1."""
    return responded(operation_id=None, is_error=True, effect=Effect.NONE)


def redelivered(event_id: str = "redelivery") -> RedeliveryStarted:
    return RedeliveryStarted(event_id, ME, "o")


def reconciled(
    observation: str = Observation.MATCHES_EXPECTED_STATE,
    event_id: str = "observation",
    operation_id: str = "o",
    *,
    identity: ExecutionIdentity = ME,
) -> Reconciled:
    return Reconciled(event_id, identity, operation_id, observation)


def completed(
    evidence: tuple[str, ...] = ("call", "dispatch", "observation", "response"),
    *,
    event_id: str = "decision",
    operation_id: str = "o",
    outcome: str | None = "response",
    reason: str = "",
) -> Decided:
    return Decided(event_id, ME, operation_id, Disposition.COMPLETED, reason, evidence, outcome)


def parked(
    reason: str = RecoveryReason.RECONCILE_DIVERGED,
    evidence: tuple[str, ...] = ("call", "dispatch", "observation"),
    *,
    event_id: str = "decision",
    outcome: str | None = None,
) -> Decided:
    return Decided(event_id, ME, "o", Disposition.PARKED, reason, evidence, outcome)


def attested(
    statement: str = Statement.COMPLETED,
    supersedes: str | None = None,
    *,
    event_id: str = "attestation",
    identity: ExecutionIdentity = ME,
) -> Attested:
    return Attested(event_id, identity, "o", statement, supersedes)


def bundle(observation: str = Observation.MATCHES_EXPECTED_STATE) -> tuple[Fact, ...]:
    """A valid completed bundle."""
    return (reconciled(observation), responded(), completed())


def parked_bundle() -> tuple[Fact, ...]:
    """A valid parked bundle."""
    return (reconciled(Observation.DIVERGED), parked())


def scan(*facts: Fact) -> Scanner:
    scanner = Scanner()
    for fact in facts:
        scanner.feed(fact)
    return scanner


def verdict(*facts: Fact, foreign: bool = False) -> Verdict:
    """The verdict on the only operation of a ledger."""
    (only,) = resolve(scan(*facts), foreign=foreign).verdicts
    return only
