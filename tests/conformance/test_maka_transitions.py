"""Which commits may follow which ledger: as Maka judged it, but for the stated differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from safepoint.adapters.interchange import maka_facts, maka_json
from safepoint.domain.reasons import LedgerIssue, WriteRefusal

from .transitions import TransitionKind, judge_transition

Case = dict[str, Any]
Cases = Mapping[str, Sequence[Case]]

IDENTITY = ("sessionId", "runId", "turnId", "invocationId")
AGREED = "agreed"
SHAPES = {"reserved_tool_boundary_fact", "reserved_recovery_fact", "transition_shape_conflict"}


def judged(case: Case) -> Any:
    """Our judgement, after the ledger's: exact retries are taken out before it is asked."""
    existing = {envelope["id"]: envelope for envelope in case["existing"]}
    candidates = [
        maka_facts.fact_of(envelope)
        for envelope in case["candidates"]
        if envelope["id"] not in existing
        or maka_json.canonical(existing[envelope["id"]]) != maka_json.canonical(envelope)
    ]
    return judge_transition(maka_facts.scan(case["existing"]), candidates, TransitionKind(case["transition"]))


def recorded(case: Case) -> Any:
    """The recorded judgement in our codes: SPEC section 22 has one refusal for what the ledger itself forbids."""
    expect = case["expect"]
    if expect["ok"]:
        return None
    code, event_id = expect["code"], expect["eventId"]
    ids = (expect.get("operationId"), expect.get("toolCallId"))
    if maka_facts.scan(case["existing"]).has_corruption:
        return (WriteRefusal.STORE_DAMAGED, event_id, code, *ids)
    if code == LedgerIssue.DUPLICATE_EVENT_ID:
        return (WriteRefusal.DUPLICATE_EVENT_ID, event_id, code, *ids)
    return (WriteRefusal.TRANSITION_SHAPE_CONFLICT, event_id, None if code in SHAPES else code, *ids)


def differs(case: Case) -> Any:
    """What we answer where we differ on purpose, or `agreed`."""
    identities = {tuple(event[key] for key in IDENTITY) for event in case["existing"] + case["candidates"]}
    known = {event["id"] for event in case["existing"]}
    if case["expect"]["ok"] and len(identities) > 1:
        # A run of ours is one execution: facts of another invocation cannot be written into it (SPEC section 4).
        first = next(event["id"] for event in case["candidates"] if event["id"] not in known)
        conflict = LedgerIssue.INVOCATION_IDENTITY_CONFLICT
        return (WriteRefusal.TRANSITION_SHAPE_CONFLICT, first, conflict, None, None)
    decided = any("recovery_decision" in maka_facts.lanes_of(event) for event in case["existing"])
    if case["expect"]["ok"] and decided and case["transition"] == "recovery_bundle":
        # The original asks its bundle rules elsewhere; ours refuses the second bundle here (SPEC section 10).
        return (WriteRefusal.BUNDLE_INVALID, case["candidates"][0]["id"], None, None, None)
    return AGREED


def test_a_transition_is_judged_alike_case_by_case(cases: Cases) -> None:
    assert cases["transition"]
    disagreeing = []
    for case in cases["transition"]:
        different = differs(case)
        expected = recorded(case) if different == AGREED else different
        if judged(case) != expected:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_the_stated_differences_of_transitions_are_differences(cases: Cases) -> None:
    stated = {summary_[2] for case in cases["transition"] if (summary_ := differs(case)) != AGREED}
    assert stated == {LedgerIssue.INVOCATION_IDENTITY_CONFLICT, None}
    agreeing = [case["id"] for case in cases["transition"] if differs(case) not in (AGREED, judged(case))]
    assert agreeing == []
