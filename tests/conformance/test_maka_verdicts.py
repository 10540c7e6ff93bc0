"""Scanner and resolver say of every ledger what Maka said, but for the differences stated here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from safepoint.adapters.interchange import maka_facts
from safepoint.adapters.interchange.maka_envelope import is_terminal
from safepoint.domain.reasons import LedgerIssue, ParkReason
from safepoint.domain.recovery.bundle_rules import BundleRule
from safepoint.domain.recovery.facts import Decided, Reconciled
from safepoint.domain.recovery.interpretation import interpret
from safepoint.domain.recovery.operation_record import OperationRecord
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.scanner import Scanner
from safepoint.domain.recovery.verdict import Verdict

Case = dict[str, Any]
Rules = Mapping[str, BundleRule]


@dataclass(frozen=True)
class Difference:
    """A place where we answer otherwise on purpose: where, why, and what is right there instead."""

    reason: str
    adjust: Callable[[Case, Case], Case]
    """(case, recorded answer) -> the answer that we must give; the same one where the difference does not apply."""


# ---- what the original said, and what we say, in one form ----


def recorded_scan(case: Case, rules: Rules) -> Case:
    scan = case["expect"]["scan"]
    return {
        "issues": [_issue(each["code"], each["eventId"], each) for each in scan["issues"]],
        "operations": [
            {
                **{key: value for key, value in each.items() if key not in {"recovery", "issueCodes"}},
                "issueCodes": list(dict.fromkeys(each.get("issueCodes", []))),
                "rule": _recorded_rule(each, rules),
            }
            for each in scan["operations"]
        ],
    }


def _issue(code: str, event_id: str, ids: Mapping[str, Any]) -> tuple[Any, ...]:
    return (code, event_id, ids.get("operationId"), ids.get("toolCallId"))


def _recorded_rule(operation: Case, rules: Rules) -> str | None:
    recovery = operation.get("recovery")
    if recovery is None:
        return None
    if recovery["kind"] == "valid":
        return "valid"
    # Where the ledger is corrupt anyway, only that it is so counts: which rule is met first may depend on the damage.
    return "broken" if operation.get("issueCodes") else rules[recovery["code"]].value


def our_scan(scanner: Scanner) -> Case:
    return {
        "issues": [(each.code, each.event_id, each.operation_id, each.call_id) for each in _ledger_issues(scanner)],
        "operations": [_our_operation(record) for record in scanner.operations()],
    }


def _ledger_issues(scanner: Scanner) -> list[Any]:
    return [each for each in scanner.issues if each.code is not ParkReason.PROTOCOL_MARKER_INVALID]


def _our_operation(record: OperationRecord) -> Case:
    recovery = [fact for _, fact in record.recovery or ()]
    settled = interpret(record)
    rule = "valid" if settled is not None else None
    if isinstance(settled, BundleRule):
        rule = "broken" if record.codes else settled.value
    named = {
        "toolCallId": record.call_id,
        "toolName": record.tool_name,
        "operationId": record.operation_id,
        "callEventId": record.call and record.call.event_id,
        "dispatchEventId": record.dispatch and record.dispatch.event_id,
        "responseEventId": record.response and record.response.event_id,
        "reconcileEventIds": [fact.event_id for fact in recovery if isinstance(fact, Reconciled)],
        "decisionEventIds": [fact.event_id for fact in recovery if isinstance(fact, Decided)],
    }
    present = {key: value for key, value in named.items() if value is not None and value != []}
    return {**present, "issueCodes": list(record.codes), "rule": rule}


def recorded_resolution(case: Case) -> Case:
    resolve_ = case["expect"]["resolve"]
    return {
        "protocol": resolve_.get("toolBoundaryProtocol"),
        "verdicts": [
            {"settlementOrigin": None, "responseIsError": None, **decision} for decision in resolve_["decisions"]
        ],
        "issues": [(each["code"], each["eventId"]) for each in resolve_["issues"]],
        "hasCorruption": resolve_["hasCorruption"],
        "requiresReconciliation": resolve_["requiresReconciliation"],
    }


def our_resolution(scanner: Scanner) -> Case:
    resolution = resolve(scanner, foreign=False)  # the original knows no foreign ledgers
    issues = [(each.code, each.event_id) for each in resolution.issues]
    # The original lists invalid markers before all else; ours stand in order.
    issues.sort(key=lambda each: each[0] != ParkReason.PROTOCOL_MARKER_INVALID)
    return {
        "protocol": resolution.protocol,
        "verdicts": [_our_decision(verdict) for verdict in resolution.verdicts],
        "issues": issues,
        "hasCorruption": resolution.has_corruption,
        "requiresReconciliation": resolution.requires_reconciliation,
    }


def _our_decision(verdict: Verdict) -> Case:
    named = {
        "toolCallId": verdict.call_id,
        "toolName": verdict.tool_name,
        "operationId": verdict.operation_id,
        "callRuntimeEventId": verdict.call_event_id,
        "dispatchRuntimeEventId": verdict.dispatch_event_id,
        "responseRuntimeEventId": verdict.response_event_id,
    }
    return {
        **{key: value for key, value in named.items() if value},  # it leaves an empty tool name out here
        "status": verdict.status.value,
        "reason": verdict.reason.value,
        "settlementOrigin": {"recovered": "recovery_bundle"}.get(verdict.origin or "", verdict.origin),
        "responseIsError": verdict.is_error,
    }


# ---- differences ----


def overstepping(case: Case) -> list[str]:
    """The events that may not follow the end: all but recovery facts and a bundle's outcome. SPEC section 7."""
    seen, dispatched, observed = set[str](), set[str](), set[str]()
    found, ended = [], False
    for event, lane in zip(case["events"], case["expect"]["lanes"], strict=True):
        if event["id"] in seen:
            continue
        seen.add(event["id"])
        operation_id = (event.get("refs") or {}).get("operationId")
        recovers = lane in {"reconcile_result", "recovery_decision"}
        concludes = lane == "function_response" and operation_id in observed
        if ended and not recovers and not concludes:
            found.append(event["id"])
        if lane == "tool_dispatch":
            dispatched.add(event["actions"]["toolDispatch"]["operationId"])
        if lane == "reconcile_result":
            observed.update({event["actions"]["toolRecovery"]["payload"]["operationId"]} & dispatched)
        if lane == "recovery_decision":
            observed.discard(event["actions"]["toolRecovery"]["payload"]["operationId"])
        ended = ended or (lane == "ordinary" and is_terminal(event))
    return found


def _corrupt(said: Case) -> Case:
    return said | {"hasCorruption": True, "requiresReconciliation": False}


def _seal_the_end(case: Case, said: Case) -> Case:
    return _corrupt(said) if overstepping(case) else said


def _require_the_dispatch_of_a_bound_response(case: Case, said: Case) -> Case:
    bound = {event["id"] for event in case["events"] if "operationId" in (event.get("refs") or {})}
    orphaned = {"status": "corruption", "reason": "orphan_response", "settlementOrigin": None}
    verdicts = [
        verdict | orphaned
        if verdict["status"] == "completed"
        and "dispatchRuntimeEventId" not in verdict
        and verdict["responseRuntimeEventId"] in bound
        else verdict
        for verdict in said["verdicts"]
    ]
    return said if verdicts == said["verdicts"] else _corrupt(said) | {"verdicts": verdicts}


RESOLUTION_DIFFERENCES = (
    Difference("after the terminal event only what SPEC section 7 lists may follow", _seal_the_end),
    Difference(
        "a response that names an operation which was never dispatched is an orphan (vectors README, 4)",
        _require_the_dispatch_of_a_bound_response,
    ),
)


def repeats_a_recovery(case: Case, call_id: str) -> bool:
    """Whether a fact of this call's recovery stands in the ledger twice under one id.

    The original then judges the bundle's order by the last place, we by the first; the ledger is corrupt for both.
    """
    ids = [event["id"] for event in case["events"]]
    operation = next(each for each in case["expect"]["scan"]["operations"] if each["toolCallId"] == call_id)
    facts = [operation.get("callEventId"), operation.get("dispatchEventId"), operation.get("responseEventId")]
    recovery = operation.get("reconcileEventIds", []) + operation.get("decisionEventIds", [])
    return bool(recovery) and any(ids.count(each) > 1 for each in facts + recovery)


# ---- the comparison ----


def test_the_scan_of_a_ledger_agrees_case_by_case(ledgers: Sequence[Case], bundle_rules: Rules) -> None:
    disagreeing = []
    for case in ledgers:
        ours, said = our_scan(maka_facts.scan(case["events"])), recorded_scan(case, bundle_rules)
        ours["issues"] = [each for each in ours["issues"] if each[0] != LedgerIssue.EVENT_AFTER_TERMINAL]
        for mine, theirs in zip(ours["operations"], said["operations"], strict=True):
            if repeats_a_recovery(case, theirs["toolCallId"]):
                mine["rule"] = theirs["rule"] = None
        if ours != said:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_the_verdicts_on_a_ledger_agree_case_by_case(ledgers: Sequence[Case]) -> None:
    disagreeing = []
    for case in ledgers:
        ours, expected = our_resolution(maka_facts.scan(case["events"])), recorded_resolution(case)
        ours["issues"] = [each for each in ours["issues"] if each[0] != LedgerIssue.EVENT_AFTER_TERMINAL]
        for difference in RESOLUTION_DIFFERENCES:
            expected = difference.adjust(case, expected)
        for mine, theirs in zip(ours["verdicts"], expected["verdicts"], strict=True):
            if repeats_a_recovery(case, theirs["toolCallId"]):
                assert expected["hasCorruption"], "a repeated id corrupts the ledger, whatever is said of the operation"
                mine.update({key: theirs[key] for key in ("status", "reason", "settlementOrigin")})
        if ours != expected:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_facts_after_the_terminal_one_are_found_where_they_are(ledgers: Sequence[Case]) -> None:
    disagreeing = []
    for case in ledgers:
        issues = maka_facts.scan(case["events"]).issues
        if [each.event_id for each in issues if each.code is LedgerIssue.EVENT_AFTER_TERMINAL] != overstepping(case):
            disagreeing.append(case["id"])
    assert disagreeing == []


@pytest.mark.parametrize("difference", RESOLUTION_DIFFERENCES, ids=lambda difference: difference.reason)
def test_a_stated_difference_is_one(ledgers: Sequence[Case], difference: Difference) -> None:
    recorded = ((case, recorded_resolution(case)) for case in ledgers)
    assert any(difference.adjust(case, said) != said for case, said in recorded), "no case differs: delete it"


def test_the_repeated_recovery_facts_still_make_a_difference(ledgers: Sequence[Case], bundle_rules: Rules) -> None:
    differing = 0
    for case in ledgers:
        ours, said = our_scan(maka_facts.scan(case["events"])), recorded_scan(case, bundle_rules)
        for mine, theirs in zip(ours["operations"], said["operations"], strict=True):
            differing += repeats_a_recovery(case, theirs["toolCallId"]) and mine["rule"] != theirs["rule"]
    assert differing, "no case differs: delete the exception"
