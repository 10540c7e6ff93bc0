"""Which facts may follow which state of a run, by the kind of commit that brings them. SPEC section 7.

The aggregates decide this command by command, and no command comes here. Here the same rules are said of any facts, so
that the cases that another system recorded can be held against them; exact retries and epochs are left out before.

Checks in order: sealed, shape, legality.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from ..reasons import LedgerIssue, ParkReason, WriteRefusal
from .bundle import broken_attestation, broken_bundle
from .bundle_rules import BundleRule
from .facts import (
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
from .interpretation import interpret
from .operation_record import Issue
from .scanner import Scanner


class TransitionKind(StrEnum):
    """The kinds of commit that write into a run; the value is what the kind is called in messages."""

    OPEN = "open"
    OPEN_AND_END = "open_and_end"
    APPEND = "append"
    STEP = "step"
    PREPARE = "prepare"
    OUTCOME = "outcome"
    END = "end"
    LATE = "late"
    REDELIVERY = "redelivery"
    RECOVERY = "recovery"
    ATTESTATION = "attestation"
    CLAIM = "claim"


_LETTERS: Mapping[type, str] = {
    Opened: "s",
    Ended: "e",
    Claimed: "k",
    Called: "c",
    Dispatched: "d",
    RedeliveryStarted: "v",
    Reconciled: "n",
    Decided: "x",
    Attested: "a",
    Conflicted: "!",
}
# Ordinary facts are "o", those that may follow the end "l"; a response is "R" when it names an operation, else "r".
_SHAPES: Mapping[TransitionKind, re.Pattern[str]] = {
    kind: re.compile(shape)
    for kind, shape in {
        TransitionKind.OPEN: "s[ol]*",
        TransitionKind.OPEN_AND_END: "s[ol]*e",
        TransitionKind.APPEND: "[olr]+",
        TransitionKind.STEP: "[olc]+",
        TransitionKind.PREPARE: "c?d",
        TransitionKind.OUTCOME: "Ro?",
        TransitionKind.END: "[olr]*e",
        TransitionKind.LATE: "l",
        TransitionKind.REDELIVERY: "v",
        TransitionKind.RECOVERY: "n[rR]?x",
        TransitionKind.ATTESTATION: "a[rR]?",
        TransitionKind.CLAIM: "k",
    }.items()
}
_OPENING = frozenset({TransitionKind.OPEN, TransitionKind.OPEN_AND_END})
_ONLY_AFTER_END = frozenset({TransitionKind.LATE, TransitionKind.CLAIM})
_ALSO_AFTER_END = frozenset({TransitionKind.REDELIVERY, TransitionKind.RECOVERY, TransitionKind.ATTESTATION})


class TransitionRefusal(NamedTuple):
    """Why candidates may not follow.

    Attributes:
        code: the refusal of SPEC section 22.
        event_id: the candidate (or, for `store_damaged`, the stored event) that it is about; empty when there is none.
        issue: the ledger issue that writing it would make, or that is there already.
        rule: for `bundle_invalid`, the rule that does not hold.
    """

    code: WriteRefusal
    event_id: str
    issue: LedgerIssue | ParkReason | None = None
    rule: BundleRule | None = None
    operation_id: str | None = None
    call_id: str | None = None


def judge_transition(scanner: Scanner, candidates: Sequence[Fact], kind: TransitionKind) -> TransitionRefusal | None:
    """Say whether candidates may be written after what the scanner has read; it is left as it is.

    Args:
        scanner: the run's state.
        candidates: the facts of one commit, in order, without those that the ledger found to be exact retries.
        kind: what the commit is for.

    Returns:
        None when they may; otherwise why not. `store_damaged` means that the state itself is corrupt, and the
        candidates are not to blame.
    """
    if scanner.issues:
        return _of_issue(WriteRefusal.STORE_DAMAGED, scanner.issues[0])
    if not candidates:
        return None
    first = candidates[0].event_id
    for fact in candidates:
        if scanner.sequence_of(fact.event_id) is not None:
            return TransitionRefusal(WriteRefusal.DUPLICATE_EVENT_ID, fact.event_id, LedgerIssue.DUPLICATE_EVENT_ID)
    if scanner.claimed_at:
        return TransitionRefusal(WriteRefusal.RUN_CLAIMED, first, LedgerIssue.EVENT_AFTER_CLAIM)
    if scanner.ended_at and kind not in _ONLY_AFTER_END | _ALSO_AFTER_END:
        return TransitionRefusal(WriteRefusal.RUN_SEALED, first, LedgerIssue.EVENT_AFTER_TERMINAL)
    if refusal := _broken_by_shape(scanner, candidates, kind):
        return refusal
    return _broken_by_legality(scanner, candidates, kind)


def _broken_by_legality(scanner: Scanner, candidates: Sequence[Fact], kind: TransitionKind) -> TransitionRefusal | None:
    after = scanner.fork()
    for fact in candidates:
        # The scanner can read ledgers of several executions; a run of ours is one, so another's fact is refused here.
        if after.identity is not None and fact.identity != after.identity:
            issue = LedgerIssue.INVOCATION_IDENTITY_CONFLICT
            return TransitionRefusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, fact.event_id, issue)
        after.feed(fact)
    if after.issues:
        return _of_issue(WriteRefusal.TRANSITION_SHAPE_CONFLICT, after.issues[0])
    first = candidates[0]
    broken: BundleRule | None = None
    if kind is TransitionKind.RECOVERY:
        broken = broken_bundle(scanner, candidates, scanner.high_water)
    elif kind is TransitionKind.ATTESTATION:
        broken = broken_attestation(scanner, candidates, scanner.high_water)
    elif isinstance(first, RedeliveryStarted) or (isinstance(first, Responded) and kind is TransitionKind.OUTCOME):
        return _broken_by_openness(scanner, after, first)
    if broken is not None:
        return TransitionRefusal(WriteRefusal.BUNDLE_INVALID, first.event_id, rule=broken)
    return None


def _broken_by_openness(
    scanner: Scanner, after: Scanner, fact: RedeliveryStarted | Responded
) -> TransitionRefusal | None:
    """An outcome or a second delivery needs an operation that was dispatched and that nothing has settled."""
    operation_id = fact.operation_id or ""
    before, record = scanner.operation(operation_id), after.operation(operation_id)
    if before is None or record is None or not before.is_open:
        return TransitionRefusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, fact.event_id)
    if interpret(before) is not None:
        return TransitionRefusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, fact.event_id)
    judged = interpret(record)
    if isinstance(judged, BundleRule):
        return TransitionRefusal(WriteRefusal.BUNDLE_INVALID, fact.event_id, rule=judged)
    return None


def _of_issue(code: WriteRefusal, issue: Issue) -> TransitionRefusal:
    named = issue.code
    if code is not WriteRefusal.STORE_DAMAGED and named is LedgerIssue.DUPLICATE_EVENT_ID:
        code = WriteRefusal.DUPLICATE_EVENT_ID
    return TransitionRefusal(code, issue.event_id, named, None, issue.operation_id, issue.call_id)


def _broken_by_shape(scanner: Scanner, candidates: Sequence[Fact], kind: TransitionKind) -> TransitionRefusal | None:
    shape = "".join(map(_letter, candidates))
    if "!" in shape:
        event_id = candidates[shape.index("!")].event_id
        issue = LedgerIssue.SEMANTIC_LANE_CONFLICT
        return TransitionRefusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, event_id, issue)
    misplaced = (kind in _OPENING and scanner.length > 0) or (kind in _ONLY_AFTER_END and not scanner.ended_at)
    allowed = _SHAPES[kind]
    if not misplaced and allowed.fullmatch(shape):
        return None
    offending = next((index for index, letter in enumerate(shape) if letter not in allowed.pattern), 0)
    return TransitionRefusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, candidates[offending].event_id)


def _letter(fact: Fact) -> str:
    if isinstance(fact, Ordinary):
        return "l" if fact.late else "o"
    if isinstance(fact, Responded):
        return "r" if fact.operation_id is None else "R"
    return _LETTERS[type(fact)]
