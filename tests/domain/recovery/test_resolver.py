"""The table of SPEC section 9, row by row, and which reason wins where several apply."""

from __future__ import annotations

import pytest

from safepoint.domain.events.tool import Effect, Observation, RecoveryMode, Statement
from safepoint.domain.reasons import LedgerIssue
from safepoint.domain.recovery.facts import Fact
from safepoint.domain.recovery.resolver import resolve, verdict_of
from safepoint.domain.recovery.scanner import Scanner
from safepoint.domain.recovery.verdict import VerdictStatus

from .ledger import (
    attested,
    bundle,
    called,
    completed,
    dispatched,
    ended,
    opened,
    parked,
    parked_bundle,
    reconciled,
    redelivered,
    refused,
    responded,
    scan,
    text,
    verdict,
)

CALL = (opened(), called())
DISPATCH = (*CALL, dispatched())
NOT_EXECUTED = (attested(Statement.NOT_EXECUTED), responded(is_error=True, effect=Effect.NONE))
UNKNOWN = responded(is_error=True, effect=Effect.UNKNOWN)

# Facts, then status, reason, origin and effect.
ROWS: dict[str, tuple[tuple[Fact, ...], str, str, str | None, str]] = {
    "call and response": (
        (*CALL, refused()),
        "completed",
        "matching_response",
        "pre_t1_synthetic",
        "none",
    ),
    "call, dispatch, response": (
        (*DISPATCH, responded()),
        "completed",
        "matching_response",
        "normal_t2",
        "done",
    ),
    "call, dispatch, a response that knows no effect": (
        (*DISPATCH, UNKNOWN),
        "completed",
        "matching_response",
        "normal_t2",
        "unknown",
    ),
    "call and dispatch": (DISPATCH, "indeterminate", "dispatch_without_response", None, "unknown"),
    "call alone, protocol declared": (
        CALL,
        "definitely_not_dispatched",
        "new_protocol_before_dispatch",
        None,
        "none",
    ),
    "call alone, no protocol": (
        (opened(None), called()),
        "indeterminate",
        "legacy_dispatch_unknown",
        None,
        "unknown",
    ),
    "call alone, unknown protocol": (
        (opened("t0_future"), called()),
        "indeterminate",
        "legacy_dispatch_unknown",
        None,
        "unknown",
    ),
    "a completed bundle": (
        (*DISPATCH, *bundle()),
        "completed",
        "recovery_bundle_completed",
        "recovered",
        "done",
    ),
    "a parked bundle": ((*DISPATCH, *parked_bundle()), "parked", "reconcile_diverged", "recovered", "unknown"),
    "attested completed": (
        (*DISPATCH, attested(), responded()),
        "completed",
        "attested_completed",
        "attested",
        "done",
    ),
    "attested not executed": (
        (*DISPATCH, *NOT_EXECUTED),
        "completed",
        "attested_not_executed",
        "attested",
        "none",
    ),
    "a parked bundle that a person superseded": (
        (*DISPATCH, *parked_bundle(), attested(supersedes="decision"), responded()),
        "completed",
        "attested_completed",
        "attested",
        "done",
    ),
    "an unknown effect that a person says happened": (
        (*DISPATCH, UNKNOWN, attested()),
        "completed",
        "matching_response",
        "normal_t2",
        "done",
    ),
    "an unknown effect that a person says did not happen": (
        (*DISPATCH, UNKNOWN, attested(Statement.NOT_EXECUTED)),
        "completed",
        "matching_response",
        "normal_t2",
        "none",
    ),
    "declared over, and nothing more": (
        (*DISPATCH, attested(Statement.OVER), attested(Statement.OVER, event_id="again")),
        "indeterminate",
        "dispatch_without_response",
        None,
        "unknown",
    ),
    "declared over after its answer": (
        (*DISPATCH, responded(), attested(Statement.OVER)),
        "completed",
        "matching_response",
        "normal_t2",
        "done",
    ),
    "declared over, then recovered": (
        (*DISPATCH, attested(Statement.OVER), *bundle()),
        "completed",
        "recovery_bundle_completed",
        "recovered",
        "done",
    ),
    "a late outcome of unknown effect that a person says did not happen": (
        (
            *DISPATCH,
            reconciled(Observation.LATE_OUTCOME),
            UNKNOWN,
            completed(),
            attested(Statement.NOT_EXECUTED, "response"),
        ),
        "completed",
        "recovery_bundle_completed",
        "recovered",
        "none",
    ),
    "delivered again, outcome not known": (
        (*CALL, dispatched(mode="idempotent"), redelivered(), redelivered("again")),
        "indeterminate",
        "dispatch_without_response",
        None,
        "unknown",
    ),
}

# Facts, then the issue that is the reason.
CORRUPT: dict[str, tuple[tuple[Fact, ...], str]] = {
    "a dispatch without call": ((opened(), dispatched()), "orphan_dispatch"),
    "a response without call": ((opened(), refused()), "orphan_response"),
    "a dispatch and a response without call": ((opened(), dispatched(), responded()), "orphan_dispatch"),
    "a response for an operation that was never dispatched": ((*CALL, responded()), "orphan_response"),
    "a call after its response": ((opened(), refused(), called()), "orphan_response"),
    "a call twice": ((*CALL, called("again")), "duplicate_call"),
    "a dispatch twice": ((*DISPATCH, dispatched("again")), "duplicate_dispatch"),
    "a response twice": ((*DISPATCH, responded(), responded("again")), "duplicate_response"),
    "other arguments": ((*CALL, dispatched(args_hash="x")), "canonical_args_hash_conflict"),
    "another tool": ((*DISPATCH, responded(tool="Edit")), "identity_conflict"),
    "a response before its dispatch": ((*CALL, responded(), dispatched()), "event_order_conflict"),
    "an observation alone": ((*DISPATCH, reconciled()), "recovery_fact_corruption"),
    "a decision alone": ((*DISPATCH, completed()), "recovery_fact_corruption"),
    "two decisions": (
        (*DISPATCH, *parked_bundle(), parked(event_id="decision2")),
        "recovery_fact_corruption",
    ),
    "two bundles": (
        (*DISPATCH, *parked_bundle(), reconciled(Observation.DIVERGED, "o2"), parked(event_id="d2")),
        "recovery_fact_corruption",
    ),
    "an outcome beside a parked bundle": (
        (*DISPATCH, responded(), *parked_bundle()),
        "recovery_fact_corruption",
    ),
    "a statement without response": ((*DISPATCH, attested()), "recovery_fact_corruption"),
    "a delivery again with a bare response": (
        (*CALL, dispatched(mode="idempotent"), redelivered(), responded()),
        "recovery_fact_corruption",
    ),
    "a delivery again of what must not be": ((*DISPATCH, redelivered()), "recovery_fact_corruption"),
}

# Each ledger holds the defects of two neighbours in the order of priority; the first must be the reason.
PRIORITIES: list[tuple[tuple[Fact, ...], list[str]]] = [
    ((called(), called("2"), dispatched(), dispatched("3")), ["duplicate_call", "duplicate_dispatch"]),
    (
        (called(), dispatched(), dispatched("2"), responded(), responded("3")),
        ["duplicate_dispatch", "duplicate_response"],
    ),
    (
        (called(), responded(), responded("2"), dispatched(args_hash="x")),
        ["duplicate_response", "canonical_args_hash_conflict", "event_order_conflict"],
    ),
    (
        (called(), dispatched(args_hash="x", tool="Edit")),
        ["canonical_args_hash_conflict", "identity_conflict"],
    ),
    ((called(), refused(), dispatched()), ["identity_conflict", "event_order_conflict"]),
    ((called(), responded(), dispatched(), reconciled()), ["event_order_conflict"]),
    ((refused(), called(), dispatched(args_hash="x")), ["orphan_response", "canonical_args_hash_conflict"]),
    ((refused(), called(), responded("2")), ["duplicate_response", "orphan_response"]),
]


@pytest.mark.parametrize("name", ROWS)
def test_each_row_of_the_table_has_its_verdict(name: str) -> None:
    facts, status, reason, origin, effect = ROWS[name]
    judged = verdict(*facts)
    assert (judged.status, judged.reason, judged.origin, judged.effect) == (status, reason, origin, effect)


@pytest.mark.parametrize("name", CORRUPT)
def test_each_defect_is_corruption_with_its_reason(name: str) -> None:
    facts, reason = CORRUPT[name]
    judged = verdict(*facts)
    assert (judged.status, judged.reason, judged.origin) == (VerdictStatus.CORRUPTION, reason, None)
    resolution = resolve(scan(*facts), foreign=False)
    assert resolution.has_corruption
    assert not resolution.requires_reconciliation


def test_two_calls_of_one_operation_are_both_corrupt() -> None:
    facts = (opened(), called("1", "c1"), called("2", "c2"), dispatched("d1", "c1"), dispatched("d2", "c2"))
    verdicts = resolve(scan(*facts), foreign=False).verdicts
    assert [(each.status, each.reason) for each in verdicts] == [("corruption", "duplicate_operation")] * 2


@pytest.mark.parametrize(("facts", "codes"), PRIORITIES)
def test_the_reason_with_the_highest_priority_wins(facts: tuple[Fact, ...], codes: list[str]) -> None:
    scanner = scan(*facts)
    (record,) = scanner.operations()
    assert set(codes) <= set(record.codes)
    assert verdict_of(scanner, record, foreign=False).reason == codes[0]


@pytest.mark.parametrize("name", ROWS)
def test_absence_proves_nothing_in_a_foreign_ledger(name: str) -> None:
    facts, status, reason, *_ = ROWS[name]
    judged = verdict(*facts, foreign=True)
    if status == "definitely_not_dispatched":
        status, reason = "indeterminate", "legacy_dispatch_unknown"
    assert (judged.status, judged.reason) == (status, reason)


def test_absence_proves_nothing_where_a_fact_may_be_missing() -> None:
    scanner = Scanner()
    scanner.feed(opened(), 1)
    scanner.feed(called(), 3)
    (judged,) = resolve(scanner, foreign=False).verdicts
    assert (judged.status, judged.reason) == ("indeterminate", "legacy_dispatch_unknown")


def test_a_protocol_that_was_declared_later_proves_nothing() -> None:
    assert verdict(text(), opened(), called()).status is VerdictStatus.INDETERMINATE


def test_an_indeterminate_operation_requires_reconciliation() -> None:
    resolution = resolve(scan(*DISPATCH, ended()), foreign=False)
    assert (resolution.has_corruption, resolution.requires_reconciliation) == (False, True)


def test_a_corrupt_ledger_requires_no_reconciliation_but_a_person() -> None:
    resolution = resolve(scan(*DISPATCH, text(), text()), foreign=False)
    assert (resolution.has_corruption, resolution.requires_reconciliation) == (True, False)
    assert [issue.code for issue in resolution.issues] == [LedgerIssue.DUPLICATE_EVENT_ID]


def test_a_settled_ledger_asks_for_nothing() -> None:
    resolution = resolve(scan(*DISPATCH, responded(), ended()), foreign=False)
    assert (resolution.has_corruption, resolution.requires_reconciliation) == (False, False)
    assert resolution.protocol == "t1_after_preflight_v1"


def test_a_verdict_names_all_facts_that_made_it() -> None:
    judged = verdict(*CALL, dispatched(mode="idempotent"), redelivered(), *bundle(Observation.REDELIVERED))
    assert judged.status is VerdictStatus.COMPLETED
    assert (judged.call_event_id, judged.dispatch_event_id, judged.response_event_id) == (
        "call",
        "dispatch",
        "response",
    )
    assert judged.recovery_event_ids == ("redelivery", "observation", "decision")
    assert (judged.operation_id, judged.call_id, judged.tool_name, judged.mode) == ("o", "c", "Write", "idempotent")
    assert (judged.call_sequence, judged.dispatch_sequence, judged.is_error) == (2, 3, False)


def test_corruption_by_a_broken_bundle_names_the_rule() -> None:
    judged = verdict(*DISPATCH, reconciled(), responded(), completed(evidence=("call",)))
    assert (judged.reason, judged.broken_rule) == ("recovery_fact_corruption", "evidence_in_causal_order")


def test_verdicts_stand_in_the_order_of_the_calls() -> None:
    facts = (opened(), called("1", "z"), called("2", "a"), dispatched("d", "a"), responded("r", "a"))
    resolution = resolve(scan(*facts), foreign=False)
    assert [(each.call_id, each.operation_id) for each in resolution.verdicts] == [("z", None), ("a", "o")]


@pytest.mark.parametrize("mode", RecoveryMode)
def test_no_mode_makes_an_unanswered_dispatch_anything_but_indeterminate(mode: RecoveryMode) -> None:
    judged = verdict(*CALL, dispatched(mode=mode))
    assert (judged.status, judged.is_settled) == (VerdictStatus.INDETERMINATE, False)
