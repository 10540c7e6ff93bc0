"""The rules of recovery bundles and attestations, each broken once, for writer and resolver alike. SPEC section 10."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from safepoint.domain.events.tool import Effect, Observation, RecoveryMode, Statement
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.recovery.bundle import broken_attestation, broken_bundle
from safepoint.domain.recovery.bundle_rules import COMPLETED_BY, FILE_OBSERVATIONS, PARKED_BY, BundleRule, broken_rule
from safepoint.domain.recovery.facts import Fact, Flaw
from safepoint.domain.recovery.interpretation import interpret

from .ledger import (
    ME,
    OTHER_INVOCATION,
    OTHER_TURN,
    attested,
    bundle,
    called,
    claimed,
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
)

OPEN = (opened(), called(), dispatched(), ended())


@dataclass(frozen=True)
class Broken:
    """Candidates that break one rule, after a run with an open operation unless said otherwise."""

    rule: BundleRule
    candidates: tuple[Fact, ...]
    existing: tuple[Fact, ...] = field(default=OPEN)


def mode(mode_: str) -> tuple[Fact, ...]:
    return (opened(), called(), dispatched(mode=mode_), ended())


BUNDLES: dict[str, Broken] = {
    "no observation": Broken(BundleRule.ONE_OBSERVATION_ONE_DECISION, (completed(),)),
    "no decision": Broken(BundleRule.ONE_OBSERVATION_ONE_DECISION, (reconciled(), responded())),
    "nothing": Broken(BundleRule.ONE_OBSERVATION_ONE_DECISION, ()),
    "outcome first": Broken(BundleRule.ONE_OBSERVATION_ONE_DECISION, (responded(), reconciled(), completed())),
    "outcome last": Broken(BundleRule.ONE_OBSERVATION_ONE_DECISION, (reconciled(), completed(), responded())),
    "a second bundle": Broken(
        BundleRule.ONE_OBSERVATION_ONE_DECISION,
        (
            reconciled(Observation.DIVERGED, "observation2"),
            parked(evidence=("call", "dispatch", "observation2"), event_id="d2"),
        ),
        (*OPEN, *parked_bundle()),
    ),
    "completion after parking": Broken(
        BundleRule.ONE_OBSERVATION_ONE_DECISION,
        (
            reconciled(event_id="observation2"),
            responded(),
            completed(("call", "dispatch", "observation2", "response"), event_id="d2"),
        ),
        (*OPEN, *parked_bundle()),
    ),
    "an operation that was never dispatched": Broken(
        BundleRule.LEDGER_STAYS_SOUND, bundle(), (opened(), called(), ended())
    ),
    "an operation that is answered": Broken(
        BundleRule.LEDGER_STAYS_SOUND,
        (reconciled(), responded("response2"), completed()),
        (opened(), called(), dispatched(), responded(), ended()),
    ),
    "an event id that was used": Broken(
        BundleRule.LEDGER_STAYS_SOUND, (reconciled(event_id="call"), responded(), completed())
    ),
    "a claimed run": Broken(BundleRule.LEDGER_STAYS_SOUND, bundle(), (*OPEN, claimed())),
    "observation of another operation": Broken(
        BundleRule.LEDGER_STAYS_SOUND, (reconciled(operation_id="x"), responded(), completed())
    ),
    "arguments that are not the call's": Broken(
        BundleRule.ARGUMENTS_MATCH, bundle(), (opened(), called(), dispatched(args_hash="x"), ended())
    ),
    "a dispatch of another tool": Broken(
        BundleRule.DISPATCH_MATCHES, bundle(), (opened(), called(), dispatched(tool="Edit"), ended())
    ),
    "a malformed observation": Broken(
        BundleRule.OBSERVATION_WELL_FORMED,
        (reconciled()._replace(flaw=Flaw.MALFORMED), responded(), completed()),
    ),
    "a malformed decision": Broken(
        BundleRule.DECISION_WELL_FORMED, (reconciled(), responded(), completed()._replace(flaw=Flaw.MALFORMED))
    ),
    "an observation that the mode does not have": Broken(
        BundleRule.MODE_ALLOWS, (reconciled(Observation.EFFECT_FREE), responded(), completed())
    ),
    "a file's observation of a tool that promised nothing": Broken(
        BundleRule.MODE_ALLOWS, bundle(), mode(RecoveryMode.OUTCOME_UNKNOWN)
    ),
    "references of another call": Broken(
        BundleRule.FACTS_OF_ONE_EXECUTION, (reconciled()._replace(call_id="x"), responded(), completed())
    ),
    "completed without outcome": Broken(BundleRule.COMPLETED_HAS_OUTCOME, (reconciled(), completed())),
    "parked with outcome": Broken(
        BundleRule.PARKED_HAS_NO_OUTCOME, (reconciled(Observation.DIVERGED), responded(), parked())
    ),
    "parked, naming an outcome": Broken(
        BundleRule.PARKED_HAS_NO_OUTCOME, (reconciled(Observation.DIVERGED), parked(outcome="response"))
    ),
    "a file finalized with an error": Broken(
        BundleRule.OUTCOME_SUCCEEDED, (reconciled(), responded(is_error=True), completed())
    ),
    "another outcome named": Broken(
        BundleRule.OUTCOME_IS_NAMED, (reconciled(), responded(), completed(outcome="other"))
    ),
    "no outcome named": Broken(BundleRule.OUTCOME_IS_NAMED, (reconciled(), responded(), completed(outcome=None))),
    "completed on a divergence": Broken(
        BundleRule.DECISION_FOLLOWS_OBSERVATION, (reconciled(Observation.DIVERGED), responded(), completed())
    ),
    "parked on a match": Broken(BundleRule.DECISION_FOLLOWS_OBSERVATION, (reconciled(), parked())),
    "parked for another reason": Broken(
        BundleRule.DECISION_FOLLOWS_OBSERVATION, (reconciled(Observation.UNREADABLE), parked())
    ),
    "evidence in another order": Broken(
        BundleRule.EVIDENCE_IN_CAUSAL_ORDER,
        (reconciled(), responded(), completed(("dispatch", "call", "observation", "response"))),
    ),
    "evidence missing": Broken(
        BundleRule.EVIDENCE_IN_CAUSAL_ORDER, (reconciled(), responded(), completed(("call", "dispatch")))
    ),
    "redelivered, but never delivered again": Broken(
        BundleRule.REDELIVERY_WAS_STARTED, bundle(Observation.REDELIVERED), mode(RecoveryMode.IDEMPOTENT)
    ),
    "delivered again against the contract": Broken(
        BundleRule.REDELIVERY_IS_IDEMPOTENT, bundle(), (*OPEN, redelivered())
    ),
}

ATTESTATIONS: dict[str, Broken] = {
    "nothing": Broken(BundleRule.ATTESTATION_HAS_RESPONSE, ()),
    "no response": Broken(BundleRule.ATTESTATION_HAS_RESPONSE, (attested(),)),
    "response first": Broken(BundleRule.ATTESTATION_HAS_RESPONSE, (responded(), attested())),
    "attested again": Broken(
        BundleRule.LEDGER_STAYS_SOUND,
        (attested(event_id="2"), responded("r2")),
        (*OPEN, attested(), responded()),
    ),
    "attested again without response": Broken(
        BundleRule.ATTESTED_ONCE, (attested(event_id="2"),), (*OPEN, attested(), responded())
    ),
    "of an operation with a known outcome": Broken(
        BundleRule.ATTESTATION_IS_CALLED_FOR,
        (attested(),),
        (opened(), called(), dispatched(), responded(), ended()),
    ),
    "of an operation that was recovered": Broken(
        BundleRule.ATTESTATION_IS_CALLED_FOR, (attested(supersedes="decision"),), (*OPEN, *bundle())
    ),
    "of another turn": Broken(BundleRule.LEDGER_STAYS_SOUND, (attested(identity=OTHER_TURN), responded())),
    "over a park that it does not name": Broken(
        BundleRule.ATTESTATION_NAMES_WHAT_IT_SUPERSEDES, (attested(), responded()), (*OPEN, *parked_bundle())
    ),
    "naming something else of an answered operation": Broken(
        BundleRule.ATTESTATION_NAMES_WHAT_IT_SUPERSEDES,
        (attested(supersedes="dispatch"),),
        (opened(), called(), dispatched(), responded(effect=Effect.UNKNOWN), ended()),
    ),
    "of another invocation": Broken(
        BundleRule.FACTS_OF_ONE_EXECUTION, (attested(identity=OTHER_INVOCATION), responded())
    ),
    "naming something else": Broken(
        BundleRule.ATTESTATION_NAMES_WHAT_IT_SUPERSEDES, (attested(supersedes="open"), responded())
    ),
    "not executed, with an effect": Broken(
        BundleRule.ATTESTED_RESPONSE_MATCHES,
        (attested(Statement.NOT_EXECUTED), responded(is_error=True, effect=Effect.UNKNOWN)),
    ),
    "not executed, as a success": Broken(
        BundleRule.ATTESTED_RESPONSE_MATCHES,
        (attested(Statement.NOT_EXECUTED), responded(effect=Effect.NONE)),
    ),
    "completed, with no effect": Broken(
        BundleRule.ATTESTED_RESPONSE_MATCHES, (attested(), responded(effect=Effect.NONE))
    ),
    "over, with a response": Broken(BundleRule.ATTESTED_RESPONSE_MATCHES, (attested(Statement.OVER), responded())),
    "an unknown statement": Broken(BundleRule.ATTESTATION_IS_CALLED_FOR, (attested("perhaps"), responded())),
    "of an operation that was never dispatched": Broken(
        BundleRule.LEDGER_STAYS_SOUND, (attested(), responded()), (opened(), called(), ended())
    ),
}


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_that_breaks_a_rule_is_refused_by_its_name(name: str) -> None:
    broken = BUNDLES[name]
    before = scan(*broken.existing)
    assert broken_bundle(before, broken.candidates) == broken.rule
    assert before.high_water == len(broken.existing), "the state is left as it was"


@pytest.mark.parametrize("name", ATTESTATIONS)
def test_an_attestation_that_breaks_a_rule_is_refused_by_its_name(name: str) -> None:
    broken = ATTESTATIONS[name]
    before = scan(*broken.existing)
    assert broken_attestation(before, broken.candidates) == broken.rule


# Bundles whose facts are given directly: what the scan of a ledger would catch before, the rules catch on their own.
DIRECT: dict[str, tuple[BundleRule, dict[str, Fact]]] = {
    "a call of another run": (
        BundleRule.CALL_MATCHES,
        {"call": called()._replace(identity=ME._replace(run_id=RunId("r2")))},
    ),
    "another call": (BundleRule.CALL_MATCHES, {"call": called(call_id="x")}),
    "a call of another session": (
        BundleRule.DISPATCH_MATCHES,
        {"call": called()._replace(identity=ME._replace(session_id=SessionId("s2")))},
    ),
    "a dispatch whose references disagree": (
        BundleRule.DISPATCH_MATCHES,
        {"dispatch": dispatched()._replace(flaw=Flaw.REFERENCES_DISAGREE)},
    ),
    "an observation of another execution": (
        BundleRule.FACTS_OF_ONE_EXECUTION,
        {"observation": reconciled(identity=OTHER_TURN)},
    ),
    "a decision whose references disagree": (
        BundleRule.FACTS_OF_ONE_EXECUTION,
        {"decision": completed()._replace(flaw=Flaw.REFERENCES_DISAGREE)},
    ),
    "an observation of another operation": (
        BundleRule.FACTS_OF_ONE_OPERATION,
        {"observation": reconciled(operation_id="x")},
    ),
    "a decision on another operation": (BundleRule.FACTS_OF_ONE_OPERATION, {"decision": completed(operation_id="x")}),
    "an outcome of another call": (BundleRule.OUTCOME_MATCHES, {"outcome": responded(call_id="x")}),
    "an outcome of another tool": (BundleRule.OUTCOME_MATCHES, {"outcome": responded(tool="x")}),
    "an outcome of another operation": (BundleRule.OUTCOME_MATCHES, {"outcome": responded(operation_id="x")}),
    "an outcome of another execution": (
        BundleRule.OUTCOME_MATCHES,
        {"outcome": responded()._replace(identity=OTHER_TURN)},
    ),
    "an outcome whose references disagree": (
        BundleRule.OUTCOME_MATCHES,
        {"outcome": responded()._replace(flaw=Flaw.REFERENCES_DISAGREE)},
    ),
    "an unknown disposition": (
        BundleRule.PARKED_HAS_NO_OUTCOME,
        {"decision": completed()._replace(disposition="maybe")},
    ),
}


@pytest.mark.parametrize("name", DIRECT)
def test_facts_that_were_given_directly_are_judged_by_the_same_rules(name: str) -> None:
    rule, changed = DIRECT[name]
    parts = {
        "call": called(),
        "dispatch": dispatched(),
        "observation": reconciled(),
        "outcome": responded(),
        "decision": completed(),
    }
    facts: Any = parts | changed
    assert broken_rule(*(facts[part] for part in parts)) == rule
    assert broken_rule(called(), dispatched(), reconciled(), responded(), completed()) is None


def test_a_decision_that_is_neither_completed_nor_parked_settles_nothing() -> None:
    decided = parked()._replace(disposition="maybe")
    observed = reconciled(Observation.DIVERGED)
    assert broken_rule(called(), dispatched(), observed, None, decided) == "decision_follows_observation"


def test_every_rule_is_broken_by_an_example() -> None:
    tried = {each.rule for each in (*BUNDLES.values(), *ATTESTATIONS.values())} | {rule for rule, _ in DIRECT.values()}
    assert tried | {BundleRule.FACTS_IN_CAUSAL_ORDER} == set(BundleRule)  # the order is tried below


@pytest.mark.parametrize("mode_", RecoveryMode)
@pytest.mark.parametrize("observation", Observation)
@pytest.mark.parametrize("is_error", [False, True])
def test_what_was_seen_completes_only_in_the_mode_that_promised_it(
    mode_: RecoveryMode, observation: Observation, is_error: bool
) -> None:
    deliveries = (redelivered(),) if mode_ is RecoveryMode.IDEMPOTENT else ()
    before = scan(*mode(mode_), *deliveries)
    candidates = (reconciled(observation), responded(is_error=is_error), completed())
    allowed = observation in COMPLETED_BY[mode_] and not (is_error and observation in FILE_OBSERVATIONS)
    assert (broken_bundle(before, candidates) is None) == allowed


@pytest.mark.parametrize("mode_", RecoveryMode)
@pytest.mark.parametrize("observation", Observation)
def test_what_was_seen_parks_only_with_its_own_reason(mode_: RecoveryMode, observation: Observation) -> None:
    before = scan(*mode(mode_))
    accepted = {
        reason
        for reason in {reason for reasons in PARKED_BY.values() for reason in reasons.values()} | {"other"}
        if broken_bundle(before, (reconciled(observation), parked(reason))) is None
    }
    expected = PARKED_BY[mode_].get(observation)
    assert accepted == ({expected} if expected else set())


def test_a_job_that_still_runs_settles_nothing() -> None:
    for mode_ in RecoveryMode:
        assert Observation.HANDLE_RUNNING not in COMPLETED_BY[mode_]
        assert Observation.HANDLE_RUNNING not in PARKED_BY[mode_]


VALID = {
    "completed": (OPEN, bundle()),
    "parked": (OPEN, parked_bundle()),
    "the owner's late outcome, an error": (
        mode(RecoveryMode.NEVER_AUTO_RETRY),
        (reconciled(Observation.LATE_OUTCOME), responded(is_error=True), completed()),
    ),
    "redelivered": ((*mode(RecoveryMode.IDEMPOTENT), redelivered()), bundle(Observation.REDELIVERED)),
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_bundle_may_be_written_once(name: str) -> None:
    existing, candidates = VALID[name]
    before = scan(*existing)
    assert broken_bundle(before, candidates) is None
    after = scan(*existing, *candidates)
    assert broken_bundle(after, candidates) is not None


VALID_ATTESTATIONS = {
    "completed": (OPEN, (attested(), responded())),
    "completed with an error that is known": (OPEN, (attested(), responded(is_error=True))),
    "naming the dispatch": (OPEN, (attested(supersedes="dispatch"), responded())),
    "not executed": (OPEN, (attested(Statement.NOT_EXECUTED), responded(is_error=True, effect=Effect.NONE))),
    "over a park": ((*OPEN, *parked_bundle()), (attested(supersedes="decision"), responded())),
    "of an unknown effect": (
        (opened(), called(), dispatched(), responded(effect=Effect.UNKNOWN), ended()),
        (attested(),),
    ),
    "over": (OPEN, (attested(Statement.OVER),)),
    "after it was declared over": ((*OPEN, attested(Statement.OVER, event_id="over")), (attested(), responded())),
}


@pytest.mark.parametrize("name", VALID_ATTESTATIONS)
def test_a_person_may_settle_what_is_not_certain(name: str) -> None:
    existing, candidates = VALID_ATTESTATIONS[name]
    before = scan(*existing)
    assert broken_attestation(before, candidates) is None


ORDERS = {
    "outcome before its observation": (opened(), called(), dispatched(), responded(), reconciled(), completed()),
    "decision before its observation": (
        opened(),
        called(),
        dispatched(),
        parked(),
        reconciled(Observation.DIVERGED),
    ),
    "delivered again after it was observed": (
        opened(),
        called(),
        dispatched(mode="idempotent"),
        reconciled(Observation.REDELIVERED),
        redelivered(),
        responded(),
        completed(),
    ),
    "delivered again after the answer": (
        opened(),
        called(),
        dispatched(mode="idempotent"),
        responded(),
        redelivered(),
    ),
    "superseded before it was parked": (
        opened(),
        called(),
        dispatched(),
        attested(supersedes="decision"),
        *parked_bundle(),
        responded(),
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_facts_in_another_order_are_no_settlement(name: str) -> None:
    (record,) = scan(*ORDERS[name]).operations()
    assert interpret(record) is BundleRule.FACTS_IN_CAUSAL_ORDER


def test_recovery_facts_of_a_refused_call_settle_nothing() -> None:
    scanner = scan(opened(), called(), refused(), ended(), reconciled())
    assert [issue.event_id for issue in scanner.issues] == ["observation"]
    assert scanner.operations()[0].recovery is None
