"""Each kind of damage has its code, where it stands; a sound ledger has none. SPEC sections 4, 7, 9 and 22."""

from __future__ import annotations

import pytest

from safepoint.domain.events.tool import Effect, Statement
from safepoint.domain.reasons import LedgerIssue, ParkReason
from safepoint.domain.recovery.facts import Ended, Fact, Flaw, Opened, Ordinary
from safepoint.domain.recovery.scanner import Scanner

from .ledger import (
    ME,
    OTHER_INVOCATION,
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

Issue = tuple[str, str]

SOUND: dict[str, tuple[Fact, ...]] = {
    "nothing": (),
    "text alone": (opened(), text(), ended()),
    "a call that was refused": (opened(), called(), refused(), ended()),
    "a call that was dispatched and answered": (opened(), called(), dispatched(), responded(), ended()),
    "a dispatch without an answer": (opened(), called(), dispatched(), ended()),
    "a bundle after the end": (opened(), called(), dispatched(), ended(), *bundle()),
    "a parked bundle and an attestation after the end": (
        opened(),
        called(),
        dispatched(),
        ended(),
        *parked_bundle(),
        attested(Statement.NOT_EXECUTED, "decision"),
        responded(is_error=True, effect=Effect.NONE),
    ),
    "a second delivery, a declaration and a claim after the end": (
        opened(),
        called(),
        dispatched(mode="idempotent"),
        ended(),
        attested(Statement.OVER),
        redelivered(),
        claimed(),
    ),
    "what may follow the end": (opened(), ended(), text(late=True), claimed()),
    "two calls at once": (
        opened(),
        called("call1", "c1"),
        called("call2", "c2"),
        dispatched("d2", "c2", "o2"),
        dispatched("d1", "c1", "o1"),
        responded("r1", "c1", "o1"),
        responded("r2", "c2", "o2"),
    ),
}

DAMAGED: dict[str, tuple[tuple[Fact, ...], list[Issue]]] = {
    "an event twice": ((text("a"), text("a")), [("duplicate_event_id", "a")]),
    "two lanes in one fact": ((opened(), conflicted()), [("semantic_lane_conflict", "two-lanes")]),
    "a call twice": ((called(), called("again")), [("duplicate_call", "again")]),
    "an operation of two calls": (
        (called("1", "c1"), called("2", "c2"), dispatched("d1", "c1"), dispatched("d2", "c2")),
        [("duplicate_operation", "d2")],
    ),
    "a dispatch twice": ((called(), dispatched(), dispatched("again")), [("duplicate_dispatch", "again")]),
    "a response twice": ((called(), refused(), responded("again")), [("duplicate_response", "again")]),
    "a response without call": ((opened(), refused()), [("orphan_response", "response")]),
    "a dispatch without call": ((opened(), dispatched()), [("event_order_conflict", "dispatch")]),
    "other arguments": (
        (called(), dispatched(args_hash="x")),
        [("canonical_args_hash_conflict", "dispatch")],
    ),
    "arguments that were no strict JSON": (
        (called(args_hash=None), dispatched()),
        [("canonical_args_hash_conflict", "dispatch")],
    ),
    "one invocation in two turns": (
        (text("a"), text("b", identity=OTHER_TURN)),
        [("invocation_identity_conflict", "b")],
    ),
    "a dispatch of another execution": (
        (called(), dispatched(identity=OTHER_TURN)),
        [("invocation_identity_conflict", "dispatch"), ("identity_conflict", "dispatch")],
    ),
    "a dispatch of another tool": ((called(), dispatched(tool="Edit")), [("identity_conflict", "dispatch")]),
    "a response of another tool": (
        (called(), responded(tool="E", operation_id=None)),
        [("identity_conflict", "response")],
    ),
    "a response of another operation": (
        (called(), dispatched(), responded(operation_id="x")),
        [("identity_conflict", "response")],
    ),
    "a response of no operation": (
        (called(), dispatched(), responded(operation_id=None)),
        [("identity_conflict", "response")],
    ),
    "references that disagree": (
        (called(), dispatched()._replace(flaw=Flaw.REFERENCES_DISAGREE)),
        [("identity_conflict", "dispatch")],
    ),
    "a response before its dispatch": (
        (called(), responded(), dispatched()),
        [("event_order_conflict", "dispatch")],
    ),
    "a response of another execution before its dispatch": (
        (called(), responded()._replace(identity=OTHER_TURN), dispatched()),
        [
            ("invocation_identity_conflict", "response"),
            ("identity_conflict", "response"),
            ("event_order_conflict", "dispatch"),
            ("identity_conflict", "response"),
        ],
    ),
    "a response whose references disagree before its dispatch": (
        (called(), responded()._replace(flaw=Flaw.REFERENCES_DISAGREE), dispatched()),
        [("event_order_conflict", "dispatch"), ("identity_conflict", "response")],
    ),
    "an answer without operation before its dispatch": (
        (called(), refused(), dispatched()),
        [("event_order_conflict", "dispatch"), ("identity_conflict", "response")],
    ),
    "an observation of no operation": ((called(), reconciled()), [("event_order_conflict", "observation")]),
    "a decision on no operation": ((opened(), completed()), [("event_order_conflict", "decision")]),
    "a statement on no operation": ((opened(), attested()), [("event_order_conflict", "attestation")]),
    "a delivery of no operation": ((opened(), redelivered()), [("event_order_conflict", "redelivery")]),
    "text after the end": ((opened(), ended(), text()), [("event_after_terminal", "text")]),
    "a second end": ((opened(), ended(), Ended("end2", ME)), [("event_after_terminal", "end2")]),
    "a call after the end": ((opened(), ended(), called()), [("event_after_terminal", "call")]),
    "a dispatch after the end": (
        (opened(), called(), ended(), dispatched()),
        [("event_after_terminal", "dispatch")],
    ),
    "a bare outcome after the end": (
        (opened(), called(), dispatched(), ended(), responded()),
        [("event_after_terminal", "response")],
    ),
    "an outcome after the end that only follows a declaration": (
        (opened(), called(), dispatched(), ended(), attested(Statement.OVER), responded()),
        [("event_after_terminal", "response")],
    ),
    "an outcome after its decision": (
        (opened(), called(), dispatched(), ended(), reconciled(), completed(), responded()),
        [("event_after_terminal", "response")],
    ),
    "anything after a claim": (
        (opened(), ended(), claimed(), text(late=True)),
        [("event_after_claim", "text")],
    ),
    "a claim before the end": ((opened(), claimed()), [("event_order_conflict", "claim")]),
    "a marker on a later fact": (
        (text("a"), Ordinary("b", ME, False, "t1_after_preflight_v1")),
        [("protocol_marker_invalid", "b")],
    ),
    "an unknown protocol": ((opened("t0_future"),), [("protocol_marker_invalid", "open")]),
    "a second opening": (
        (opened(), Opened("open2", ME, "t1_after_preflight_v1")),
        [("protocol_marker_invalid", "open2"), ("event_order_conflict", "open2")],
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_ledger_has_no_issue(name: str) -> None:
    scanner = scan(*SOUND[name])
    assert scanner.issues == []
    assert not scanner.has_corruption


@pytest.mark.parametrize("name", DAMAGED)
def test_each_damage_has_its_code(name: str) -> None:
    facts, issues = DAMAGED[name]
    scanner = scan(*facts)
    assert [(issue.code, issue.event_id) for issue in scanner.issues] == issues
    assert scanner.has_corruption


def test_every_issue_that_a_scan_can_find_is_in_the_table() -> None:
    found = {code for _, issues in DAMAGED.values() for code, _ in issues}
    # An orphan dispatch and a broken bundle are verdicts; gaps and broken links need sequences and digests (below).
    elsewhere = {"orphan_dispatch", "recovery_fact_corruption", "chain_broken", "sequence_gap"}
    assert found == {*map(str, LedgerIssue), str(ParkReason.PROTOCOL_MARKER_INVALID)} - elsewhere


def test_a_gap_in_the_sequence_is_found() -> None:
    scanner = Scanner()
    for sequence, event_id in ((1, "a"), (2, "b"), (4, "d"), (5, "e")):
        scanner.feed(text(event_id), sequence)
    assert [(issue.code, issue.event_id, issue.sequence) for issue in scanner.issues] == [("sequence_gap", "d", 4)]
    assert scanner.absence_unproven


def test_a_ledger_that_does_not_begin_at_one_has_a_gap() -> None:
    scanner = Scanner()
    scanner.feed(text(), 2)
    assert [issue.code for issue in scanner.issues] == [LedgerIssue.SEQUENCE_GAP]


def test_a_broken_link_is_found_where_it_is() -> None:
    scanner = Scanner()
    scanner.feed(text("a"), 1, "0" * 64, "da")
    scanner.feed(text("b"), 2, "da", "db")
    scanner.feed(text("c"), 3, "dX", "dc")
    scanner.feed(text("d"), 4, "dc", "dd")
    assert [(issue.code, issue.event_id) for issue in scanner.issues] == [("chain_broken", "c")]
    assert scanner.absence_unproven
    assert scanner.digest == "dd"


def test_a_link_is_compared_only_with_a_digest_that_is_known() -> None:
    scanner = Scanner()
    scanner.feed(text("a"))
    scanner.feed(text("b"), 2, "da", "db")
    assert scanner.issues == []


def test_the_first_end_and_the_first_claim_count() -> None:
    scanner = scan(opened(), ended(), Ended("end2", ME), claimed(), claimed()._replace(event_id="claim2"))
    assert (scanner.ended_at, scanner.claimed_at) == (2, 4)


def test_the_first_fact_must_name_the_constant_as_its_predecessor() -> None:
    scanner = Scanner()
    scanner.feed(text(), 1, "1" * 64, "d")
    assert [issue.code for issue in scanner.issues] == [LedgerIssue.CHAIN_BROKEN]


def test_several_invocations_may_share_a_foreign_ledger_and_their_call_ids() -> None:
    theirs = called("their-call")._replace(identity=OTHER_INVOCATION)
    scanner = scan(called(), theirs, refused())
    assert scanner.issues == []
    assert [record.response is None for record in scanner.operations()] == [False, True]


def test_a_record_can_be_found_by_call_operation_and_event() -> None:
    scanner = scan(opened(), called(), dispatched(), text())
    record = scanner.operation("o")
    assert record is not None
    assert record is scanner.call("c")
    assert (record.call_at, record.dispatch_at, record.response_at) == (2, 3, 0)
    assert record.is_open
    assert (scanner.sequence_of("dispatch"), scanner.sequence_of("other")) == (3, None)
    assert (scanner.operation("x"), scanner.call("x")) == (None, None)


def test_only_the_calls_without_answer_are_unanswered() -> None:
    scanner = scan(called("1", "c1"), called("2", "c2"), called("3", "c3"), dispatched("d3", "c3", "o3"), refused())
    assert [record.call_id for record in scanner.unanswered()] == ["c1", "c2", "c3"]
    scanner.feed(responded("r1", "c1", None))
    scanner.feed(responded("r3", "c3", "o3"))
    assert [record.call_id for record in scanner.unanswered()] == ["c2"]


def test_a_damaged_operation_keeps_each_of_its_codes_once() -> None:
    scanner = scan(called(), called("2"), dispatched(args_hash="x"), called("3"))
    record = scanner.call("c")
    assert record is not None
    assert record.codes == (LedgerIssue.DUPLICATE_CALL, LedgerIssue.CANONICAL_ARGS_HASH_CONFLICT)
    assert len(scanner.issues) == 3


def test_an_operation_that_many_calls_claim_keeps_the_code_once() -> None:
    calls = (called("1", "c1"), called("2", "c2"), called("3", "c3"))
    scanner = scan(*calls, dispatched("d1", "c1"), dispatched("d2", "c2"), dispatched("d3", "c3"))
    assert [record.codes for record in scanner.operations()] == [(LedgerIssue.DUPLICATE_OPERATION,)] * 3


def test_a_copy_and_its_origin_go_their_own_ways() -> None:
    origin = scan(opened(), called())
    copy = origin.copy()
    copy.feed(dispatched())
    copy.feed(responded())
    origin.feed(dispatched(args_hash="x"))
    copied, kept = copy.call("c"), origin.call("c")
    assert copied is not None
    assert kept is not None
    assert (copied.response is not None, kept.response) == (True, None)
    assert ([issue.code for issue in copy.issues], copy.high_water) == ([], 4)
    assert ([issue.code for issue in origin.issues], origin.high_water) == (["canonical_args_hash_conflict"], 3)


def test_what_a_fork_is_fed_does_not_reach_its_origin() -> None:
    origin = scan(opened(), called())
    fork = origin.fork()
    for fact in (dispatched(), responded(), called("e2", "c2"), called("e2", "c3")):
        fork.feed(fact)
    assert (origin.high_water, origin.issues, origin.sequence_of("e2")) == (2, [], None)
    assert ([one.call_id for one in origin.operations()], origin.operation("o")) == (["c"], None)
    assert [(one.call_id, one.dispatch) for one in origin.unanswered()] == [("c", None)]
    assert ([one.call_id for one in fork.operations()], [one.code for one in fork.issues]) == (
        ["c", "c2"],
        ["duplicate_event_id"],
    )
    assert [one.call_id for one in fork.unanswered()] == ["c2"]


def test_recovery_facts_of_a_fork_do_not_reach_its_origin() -> None:
    origin = scan(called(), dispatched(), reconciled())
    fork = origin.fork()
    fork.feed(completed())
    kept = origin.operation("o")
    assert kept is not None
    assert [fact.event_id for _, fact in kept.recovery or ()] == ["observation"]
