"""What may follow a ledger of Maka, by the kind of commit, said in terms of facts as the recorded cases say it.

Here our aggregates decide command by command, so a shape of a commit is the type of a command, and no rule of ours is
asked for one. What is to agree is what lies under it: the scanner, and the rules of bundles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from safepoint.domain.reasons import LedgerIssue, ParkReason, WriteRefusal
from safepoint.domain.recovery.bundle import broken_bundle
from safepoint.domain.recovery.facts import (
    Called,
    Conflicted,
    Decided,
    Dispatched,
    Ended,
    Fact,
    Opened,
    Reconciled,
    Responded,
)
from safepoint.domain.recovery.interpretation import interpret
from safepoint.domain.recovery.operation_record import Issue
from safepoint.domain.recovery.scanner import Scanner


class TransitionKind(StrEnum):
    """The kinds of commit of the recorded cases."""

    APPEND = "generic_append"
    PREPARE = "t1_prepare"
    OUTCOME = "t2_outcome"
    RECOVERY = "recovery_bundle"


_LETTERS: Mapping[type, str] = {
    Opened: "s",
    Ended: "e",
    Called: "c",
    Dispatched: "d",
    Reconciled: "n",
    Decided: "x",
    Conflicted: "!",
}
# Other facts are "o"; a response is "R" when it names an operation, else "r". An append has calls or answers, not both.
_SHAPES: Mapping[TransitionKind, re.Pattern[str]] = {
    TransitionKind.APPEND: re.compile("[oc]+|[or]+"),
    TransitionKind.PREPARE: re.compile("c?d"),
    TransitionKind.OUTCOME: re.compile("Ro?"),
    TransitionKind.RECOVERY: re.compile("n[rR]?x"),
}


class TransitionRefusal(NamedTuple):
    """Why candidates may not follow: our code, the event that it is about, and the issue and ids that belong to it."""

    code: WriteRefusal
    event_id: str
    issue: LedgerIssue | ParkReason | None = None
    operation_id: str | None = None
    call_id: str | None = None


def judge_transition(scanner: Scanner, candidates: Sequence[Fact], kind: TransitionKind) -> TransitionRefusal | None:
    """Say whether candidates may be written after what the scanner has read; None when they may.

    Args:
        scanner: the run's state; left as it is.
        candidates: the facts of one commit, in order, without exact retries.
        kind: what the commit is for.
    """
    if scanner.issues:
        return _of_issue(WriteRefusal.STORE_DAMAGED, scanner.issues[0])
    for fact in candidates:
        if scanner.sequence_of(fact.event_id) is not None:
            return TransitionRefusal(WriteRefusal.DUPLICATE_EVENT_ID, fact.event_id, LedgerIssue.DUPLICATE_EVENT_ID)
    if not candidates:
        return None
    return _broken_by_shape(candidates, kind) or _broken_by_legality(scanner, candidates, kind)


def _broken_by_shape(candidates: Sequence[Fact], kind: TransitionKind) -> TransitionRefusal | None:
    shape = "".join(map(_letter, candidates))
    if "!" in shape:
        return _unfit(candidates[shape.index("!")], LedgerIssue.SEMANTIC_LANE_CONFLICT)
    if (allowed := _SHAPES[kind]).fullmatch(shape):
        return None
    return _unfit(candidates[next((at for at, letter in enumerate(shape) if letter not in allowed.pattern), 0)])


def _broken_by_legality(scanner: Scanner, candidates: Sequence[Fact], kind: TransitionKind) -> TransitionRefusal | None:
    after = scanner.fork()
    for fact in candidates:
        # The scanner can read ledgers of several executions; a run of ours is one, so another's fact is refused here.
        if after.identity is not None and fact.identity != after.identity:
            return _unfit(fact, LedgerIssue.INVOCATION_IDENTITY_CONFLICT)
        after.feed(fact)
    if after.issues:
        return _of_issue(WriteRefusal.TRANSITION_SHAPE_CONFLICT, after.issues[0])
    first = candidates[0]
    if kind is TransitionKind.RECOVERY and broken_bundle(scanner, candidates) is not None:
        return TransitionRefusal(WriteRefusal.BUNDLE_INVALID, first.event_id)
    if kind is TransitionKind.OUTCOME and isinstance(first, Responded):
        before = scanner.operation(first.operation_id or "")
        if before is None or not before.is_open or interpret(before) is not None:
            return _unfit(first)
    return None


def _unfit(fact: Fact, issue: LedgerIssue | None = None) -> TransitionRefusal:
    return TransitionRefusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, fact.event_id, issue)


def _of_issue(code: WriteRefusal, issue: Issue) -> TransitionRefusal:
    if code is not WriteRefusal.STORE_DAMAGED and issue.code is LedgerIssue.DUPLICATE_EVENT_ID:
        code = WriteRefusal.DUPLICATE_EVENT_ID
    return TransitionRefusal(code, issue.event_id, issue.code, issue.operation_id, issue.call_id)


def _letter(fact: Fact) -> str:
    if isinstance(fact, Responded):
        return "r" if fact.operation_id is None else "R"
    return _LETTERS.get(type(fact), "o")
