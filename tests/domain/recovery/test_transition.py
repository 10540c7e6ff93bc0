"""Which commit may follow which state of a run, by its kind. SPEC section 7."""

from __future__ import annotations

import pytest

from safepoint.domain.events.tool import Observation, Statement
from safepoint.domain.reasons import LedgerIssue, WriteRefusal
from safepoint.domain.recovery.bundle_rules import BundleRule
from safepoint.domain.recovery.facts import Fact
from safepoint.domain.recovery.transition import TransitionKind, judge_transition

from .ledger import (
    OTHER_TURN,
    attested,
    bundle,
    called,
    claimed,
    completed,
    conflicted,
    dispatched,
    ended,
    opened,
    parked_bundle,
    reconciled,
    redelivered,
    refused,
    responded,
    scan,
    text,
)

OPEN = (opened(),)
CALLED = (*OPEN, called())
DISPATCHED = (*CALLED, dispatched())
IDEMPOTENT = (*CALLED, dispatched(mode="idempotent"))

K = TransitionKind
ALLOWED: dict[str, tuple[TransitionKind, tuple[Fact, ...], tuple[Fact, ...]]] = {
    "nothing": (K.APPEND, OPEN, ()),
    "opening": (K.OPEN, (), (opened(), text())),
    "opening and ending a claim's target": (K.OPEN_AND_END, (), (opened(), ended())),
    "text": (K.APPEND, OPEN, (text(), text("text2", late=True))),
    "a refusal before T1": (K.APPEND, CALLED, (refused(),)),
    "a model step": (K.STEP, OPEN, (text(), called("1", "c1"), called("2", "c2"))),
    "T1": (K.PREPARE, CALLED, (dispatched(),)),
    "T1 with its call": (K.PREPARE, OPEN, (called(), dispatched())),
    "T2": (K.OUTCOME, DISPATCHED, (responded(),)),
    "T2 with work that goes on": (K.OUTCOME, DISPATCHED, (responded(), text("background"))),
    "ending": (K.END, CALLED, (refused(), ended())),
    "what may follow the end": (K.LATE, (*OPEN, ended()), (text(late=True),)),
    "a second delivery": (K.REDELIVERY, (*IDEMPOTENT, ended()), (redelivered(),)),
    "a bundle": (K.RECOVERY, (*DISPATCHED, ended()), bundle()),
    "a parked bundle": (K.RECOVERY, (*DISPATCHED, ended()), parked_bundle()),
    "an attestation": (K.ATTESTATION, (*DISPATCHED, ended()), (attested(), responded())),
    "a claim": (K.CLAIM, (*OPEN, ended()), (claimed(),)),
}

# Kind, existing, candidates, then code, event, issue and rule.
Refused = tuple[
    TransitionKind, tuple[Fact, ...], tuple[Fact, ...], WriteRefusal, str, LedgerIssue | None, BundleRule | None
]
W = WriteRefusal
REFUSED: dict[str, Refused] = {
    "anything on a damaged state": (
        K.APPEND,
        (*OPEN, called(), called("again")),
        (text(),),
        W.STORE_DAMAGED,
        "again",
        LedgerIssue.DUPLICATE_CALL,
        None,
    ),
    "anything on a state where an event stands twice": (
        K.APPEND,
        (*OPEN, text(), text()),
        (text("new"),),
        W.STORE_DAMAGED,
        "text",
        LedgerIssue.DUPLICATE_EVENT_ID,
        None,
    ),
    "a used event id": (
        K.APPEND,
        OPEN,
        (text("open"),),
        W.DUPLICATE_EVENT_ID,
        "open",
        LedgerIssue.DUPLICATE_EVENT_ID,
        None,
    ),
    "an event id twice in one commit": (
        K.APPEND,
        OPEN,
        (text(), text()),
        W.DUPLICATE_EVENT_ID,
        "text",
        LedgerIssue.DUPLICATE_EVENT_ID,
        None,
    ),
    "anything after a claim": (
        K.RECOVERY,
        (*DISPATCHED, ended(), claimed()),
        bundle(),
        W.RUN_CLAIMED,
        "observation",
        LedgerIssue.EVENT_AFTER_CLAIM,
        None,
    ),
    "text after the end": (
        K.APPEND,
        (*OPEN, ended()),
        (text(),),
        W.RUN_SEALED,
        "text",
        LedgerIssue.EVENT_AFTER_TERMINAL,
        None,
    ),
    "T1 after the end": (
        K.PREPARE,
        (*CALLED, ended()),
        (dispatched(),),
        W.RUN_SEALED,
        "dispatch",
        LedgerIssue.EVENT_AFTER_TERMINAL,
        None,
    ),
    "a second end": (
        K.END,
        (*OPEN, ended()),
        (ended()._replace(event_id="end2"),),
        W.RUN_SEALED,
        "end2",
        LedgerIssue.EVENT_AFTER_TERMINAL,
        None,
    ),
    "an opening of an open run": (K.OPEN, (text(),), (opened(),), W.TRANSITION_SHAPE_CONFLICT, "open", None, None),
    "late facts before the end": (
        K.LATE,
        OPEN,
        (text(late=True),),
        W.TRANSITION_SHAPE_CONFLICT,
        "text",
        None,
        None,
    ),
    "a claim before the end": (K.CLAIM, OPEN, (claimed(),), W.TRANSITION_SHAPE_CONFLICT, "claim", None, None),
    "a dispatch by append": (
        K.APPEND,
        CALLED,
        (text(), dispatched()),
        W.TRANSITION_SHAPE_CONFLICT,
        "dispatch",
        None,
        None,
    ),
    "an outcome by append": (K.APPEND, DISPATCHED, (responded(),), W.TRANSITION_SHAPE_CONFLICT, "response", None, None),
    "a recovery fact by append": (
        K.APPEND,
        DISPATCHED,
        (reconciled(), completed()),
        W.TRANSITION_SHAPE_CONFLICT,
        "observation",
        None,
        None,
    ),
    "two lanes": (
        K.STEP,
        OPEN,
        (text(), conflicted()),
        W.TRANSITION_SHAPE_CONFLICT,
        "two-lanes",
        LedgerIssue.SEMANTIC_LANE_CONFLICT,
        None,
    ),
    "another execution": (
        K.APPEND,
        OPEN,
        (text(identity=OTHER_TURN),),
        W.TRANSITION_SHAPE_CONFLICT,
        "text",
        LedgerIssue.INVOCATION_IDENTITY_CONFLICT,
        None,
    ),
    "a call id again": (
        K.STEP,
        CALLED,
        (called("again"),),
        W.TRANSITION_SHAPE_CONFLICT,
        "again",
        LedgerIssue.DUPLICATE_CALL,
        None,
    ),
    "T1 with other arguments": (
        K.PREPARE,
        CALLED,
        (dispatched(args_hash="x"),),
        W.TRANSITION_SHAPE_CONFLICT,
        "dispatch",
        LedgerIssue.CANONICAL_ARGS_HASH_CONFLICT,
        None,
    ),
    "T2 of an operation that was never dispatched": (
        K.OUTCOME,
        CALLED,
        (responded(),),
        W.TRANSITION_SHAPE_CONFLICT,
        "response",
        None,
        None,
    ),
    "T2 again": (
        K.OUTCOME,
        (*DISPATCHED, responded()),
        (responded("again"),),
        W.TRANSITION_SHAPE_CONFLICT,
        "again",
        LedgerIssue.DUPLICATE_RESPONSE,
        None,
    ),
    "T2 of a parked operation": (
        K.OUTCOME,
        (*DISPATCHED, *parked_bundle()),
        (responded(),),
        W.TRANSITION_SHAPE_CONFLICT,
        "response",
        None,
        None,
    ),
    "T2 while it is delivered again": (
        K.OUTCOME,
        (*IDEMPOTENT, redelivered()),
        (responded(),),
        W.BUNDLE_INVALID,
        "response",
        None,
        BundleRule.ONE_OBSERVATION_ONE_DECISION,
    ),
    "a second delivery of what must not be repeated": (
        K.REDELIVERY,
        (*DISPATCHED, ended()),
        (redelivered(),),
        W.BUNDLE_INVALID,
        "redelivery",
        None,
        BundleRule.REDELIVERY_IS_IDEMPOTENT,
    ),
    "a second delivery of what is answered": (
        K.REDELIVERY,
        (*IDEMPOTENT, responded(), ended()),
        (redelivered(),),
        W.TRANSITION_SHAPE_CONFLICT,
        "redelivery",
        None,
        None,
    ),
    "a bundle against its own observation": (
        K.RECOVERY,
        (*DISPATCHED, ended()),
        bundle(Observation.DIVERGED),
        W.BUNDLE_INVALID,
        "observation",
        None,
        BundleRule.DECISION_FOLLOWS_OBSERVATION,
    ),
    "an attestation against its own response": (
        K.ATTESTATION,
        (*DISPATCHED, ended()),
        (attested(Statement.NOT_EXECUTED), responded()),
        W.BUNDLE_INVALID,
        "attestation",
        None,
        BundleRule.ATTESTED_RESPONSE_MATCHES,
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_the_commands_write_is_allowed(name: str) -> None:
    kind, existing, candidates = ALLOWED[name]
    assert judge_transition(scan(*existing), candidates, kind) is None


@pytest.mark.parametrize("name", REFUSED)
def test_what_must_not_follow_is_refused_with_its_code(name: str) -> None:
    kind, existing, candidates, *expected = REFUSED[name]
    refusal = judge_transition(scan(*existing), candidates, kind)
    assert refusal is not None
    assert [refusal.code, refusal.event_id, refusal.issue, refusal.rule] == expected


def test_every_kind_of_commit_is_tried() -> None:
    assert {kind for kind, *_ in ALLOWED.values()} == set(TransitionKind)


@pytest.mark.parametrize("name", ALLOWED)
def test_judging_leaves_the_state_as_it_is(name: str) -> None:
    kind, existing, candidates = ALLOWED[name]
    scanner = scan(*existing)
    judge_transition(scanner, candidates, kind)
    assert (scanner.length, scanner.issues) == (len(existing), [])
    assert [scanner.sequence_of(fact.event_id) for fact in candidates] == [None] * len(candidates)
