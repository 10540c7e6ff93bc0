"""Recovery bundles whose parts were given directly are judged as Maka judged them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from safepoint.adapters.interchange import maka_facts
from safepoint.domain.recovery.bundle_rules import BundleRule, broken_rule
from safepoint.domain.recovery.facts import Called, Conflicted, Decided, Dispatched, Reconciled, Responded

Case = dict[str, Any]
Cases = Mapping[str, Sequence[Case]]

PARTS = ("call", "dispatch", "reconcile", "outcome", "decision")


def broken_bundle_of(bundle: Case) -> str | None:
    """The rule that a bundle breaks. The original also gets the operation's row, which must fit the two events."""
    row: Case = bundle["operation"]
    events: Case = {key: bundle.get(f"{key}Event") for key in PARTS}
    called, dispatched = maka_facts.called_of(events["call"]), maka_facts.dispatched_of(events["dispatch"])
    if not is_of_row(row, events["call"], called) or called.event_id != row["callEventId"]:
        return BundleRule.CALL_MATCHES
    if called.args_hash != row["canonicalArgsHash"]:
        return BundleRule.ARGUMENTS_MATCH
    if not is_of_row(row, events["dispatch"], dispatched) or dispatched_row(dispatched) != dispatched_row_of(row):
        return BundleRule.DISPATCH_MATCHES
    observed, decided = maka_facts.reconciled_of(events["reconcile"]), maka_facts.decided_of(events["decision"])
    outcome = None if events["outcome"] is None else maka_facts.responded_of(events["outcome"])
    broken = broken_rule(called, dispatched, observed, outcome, decided)
    return broken or broken_by_form(events, decided)


def broken_by_form(events: Case, decided: Decided) -> BundleRule | None:
    """The importer makes a fact of another form `Conflicted`, so it never reaches a bundle; here it is given as one."""
    for part in ("reconcile", "decision"):
        if not isinstance(maka_facts.fact_of(events[part]), Reconciled | Decided):
            return BundleRule.FACTS_OF_ONE_EXECUTION
    if decided.disposition == "completed" and not isinstance(maka_facts.fact_of(events["outcome"]), Responded):
        return BundleRule.OUTCOME_MATCHES
    return None


def is_of_row(row: Case, envelope: Case, fact: Called | Dispatched) -> bool:
    same_execution = all(envelope[key] == row[key] for key in ("invocationId", "runId", "turnId"))
    named = (fact.call_id, fact.tool_name) == (row["providerToolCallId"], row["toolName"])
    return same_execution and named and not isinstance(maka_facts.fact_of(envelope), Conflicted)


def dispatched_row(dispatched: Dispatched) -> tuple[str, ...]:
    return (dispatched.event_id, dispatched.operation_id, dispatched.args_hash, dispatched.mode)


def dispatched_row_of(row: Case) -> tuple[str, ...]:
    return (row["dispatchEventId"], row["operationId"], row["canonicalArgsHash"], row["recoveryMode"])


def test_a_bundle_is_judged_alike_case_by_case(cases: Cases, bundle_rules: Mapping[str, BundleRule]) -> None:
    assert cases["bundle_direct"]
    disagreeing = []
    for case in cases["bundle_direct"]:
        expected = None if case["expect"]["ok"] else bundle_rules[case["expect"]["code"]]
        if broken_bundle_of(case["bundle"]) != expected:
            disagreeing.append(case["id"])
    assert disagreeing == []
