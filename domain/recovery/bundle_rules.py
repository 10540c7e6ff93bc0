"""The rules that the facts of one recovery bundle hold to, each with a name. SPEC section 10."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ..events.tool import Disposition, Observation, RecoveryMode
from ..reasons import RecoveryReason
from .facts import Called, Decided, Dispatched, Flaw, Reconciled, Responded


class BundleRule(StrEnum):
    """A rule of bundles and attestations; a refused write names the one that it broke beside `bundle_invalid`."""

    ONE_OBSERVATION_ONE_DECISION = "one_observation_one_decision"
    CALL_MATCHES = "call_matches"
    ARGUMENTS_MATCH = "arguments_match"
    DISPATCH_MATCHES = "dispatch_matches"
    OBSERVATION_WELL_FORMED = "observation_well_formed"
    DECISION_WELL_FORMED = "decision_well_formed"
    MODE_ALLOWS = "mode_allows"
    FACTS_OF_ONE_EXECUTION = "facts_of_one_execution"
    FACTS_OF_ONE_OPERATION = "facts_of_one_operation"
    COMPLETED_HAS_OUTCOME = "completed_has_outcome"
    PARKED_HAS_NO_OUTCOME = "parked_has_no_outcome"
    OUTCOME_MATCHES = "outcome_matches"
    OUTCOME_SUCCEEDED = "outcome_succeeded"
    OUTCOME_IS_NAMED = "outcome_is_named"
    DECISION_FOLLOWS_OBSERVATION = "decision_follows_observation"
    EVIDENCE_IN_CAUSAL_ORDER = "evidence_in_causal_order"
    FACTS_IN_CAUSAL_ORDER = "facts_in_causal_order"
    LEDGER_STAYS_SOUND = "ledger_stays_sound"
    REDELIVERY_IS_IDEMPOTENT = "redelivery_is_idempotent"
    REDELIVERY_WAS_STARTED = "redelivery_was_started"
    ATTESTED_ONCE = "attested_once"
    ATTESTATION_IS_CALLED_FOR = "attestation_is_called_for"
    ATTESTATION_NAMES_WHAT_IT_SUPERSEDES = "attestation_names_what_it_supersedes"
    ATTESTATION_HAS_RESPONSE = "attestation_has_response"
    ATTESTED_RESPONSE_MATCHES = "attested_response_matches"


FILE_OBSERVATIONS = frozenset(
    {
        Observation.MATCHES_EXPECTED_STATE,
        Observation.ALREADY_SATISFIED,
        Observation.MATCHES_PRIOR_STATE,
        Observation.DIVERGED,
    }
)
"""What is seen of a file: it can be finalized as done, never as failed."""

COMPLETED_BY: Mapping[str, frozenset[str]] = {
    RecoveryMode.REPLAY_SAFE: frozenset({Observation.EFFECT_FREE, Observation.LATE_OUTCOME}),
    RecoveryMode.IDEMPOTENT: frozenset({Observation.REDELIVERED, Observation.LATE_OUTCOME}),
    RecoveryMode.RECONCILE: frozenset(
        {Observation.MATCHES_EXPECTED_STATE, Observation.ALREADY_SATISFIED, Observation.LATE_OUTCOME}
    ),
    RecoveryMode.REATTACH: frozenset({Observation.HANDLE_SETTLED, Observation.LATE_OUTCOME}),
    RecoveryMode.OUTCOME_UNKNOWN: frozenset({Observation.LATE_OUTCOME}),
    RecoveryMode.NEVER_AUTO_RETRY: frozenset({Observation.LATE_OUTCOME}),
}
"""Mode -> the observations that prove an outcome. A late outcome comes from the live owner and fits every mode."""

PARKED_BY: Mapping[str, Mapping[str, RecoveryReason]] = {
    RecoveryMode.REPLAY_SAFE: {},
    RecoveryMode.IDEMPOTENT: {Observation.UNREADABLE: RecoveryReason.IDEMPOTENCY_KEY_EXPIRED},
    RecoveryMode.RECONCILE: {
        Observation.MATCHES_PRIOR_STATE: RecoveryReason.RECONCILE_MATCHES_PRIOR_STATE,
        Observation.DIVERGED: RecoveryReason.RECONCILE_DIVERGED,
        Observation.UNREADABLE: RecoveryReason.RECONCILE_UNREADABLE,
    },
    RecoveryMode.REATTACH: {Observation.HANDLE_UNKNOWN: RecoveryReason.HANDLE_UNKNOWN},
    RecoveryMode.OUTCOME_UNKNOWN: {Observation.UNREADABLE: RecoveryReason.CONTRACT_FORBIDS_RECOVERY},
    RecoveryMode.NEVER_AUTO_RETRY: {Observation.UNREADABLE: RecoveryReason.CONTRACT_FORBIDS_RECOVERY},
}
"""Mode -> observation -> the reason to park with. `handle_running` is in neither table: it settles nothing yet."""


def broken_rule(
    call: Called, dispatch: Dispatched, observed: Reconciled, outcome: Responded | None, decided: Decided
) -> BundleRule | None:
    """The first rule that these facts break, by content alone; None when they make a bundle.

    Where the facts stand in the ledger is for whoever has their sequences (`interpret`).
    """
    return (
        _broken_by_attempt(call, dispatch)
        or _broken_by_observation(dispatch, observed, decided)
        or _broken_by_identity(dispatch, observed, decided)
        or (
            _broken_by_completion(dispatch, observed, outcome, decided)
            if decided.disposition == Disposition.COMPLETED
            else _broken_by_parking(dispatch, observed, outcome, decided)
        )
        or _broken_by_evidence(call, dispatch, observed, outcome, decided)
    )


def _broken_by_attempt(call: Called, dispatch: Dispatched) -> BundleRule | None:
    if call.identity[1:] != dispatch.identity[1:] or call.call_id != dispatch.call_id:
        return BundleRule.CALL_MATCHES
    if call.args_hash != dispatch.args_hash:
        return BundleRule.ARGUMENTS_MATCH
    if call.identity != dispatch.identity or call.tool_name != dispatch.tool_name or dispatch.flaw is not None:
        return BundleRule.DISPATCH_MATCHES
    return None


def _broken_by_observation(dispatch: Dispatched, observed: Reconciled, decided: Decided) -> BundleRule | None:
    if observed.flaw is Flaw.MALFORMED:
        return BundleRule.OBSERVATION_WELL_FORMED
    completing = COMPLETED_BY.get(dispatch.mode, frozenset())
    if observed.observation not in completing and observed.observation not in PARKED_BY.get(dispatch.mode, {}):
        return BundleRule.MODE_ALLOWS
    if decided.flaw is Flaw.MALFORMED:
        return BundleRule.DECISION_WELL_FORMED
    return None


def _broken_by_identity(dispatch: Dispatched, observed: Reconciled, decided: Decided) -> BundleRule | None:
    for fact in (observed, decided):
        if fact.identity != dispatch.identity or fact.call_id not in {None, dispatch.call_id}:
            return BundleRule.FACTS_OF_ONE_EXECUTION
    for fact in (observed, decided):
        if fact.operation_id != dispatch.operation_id:
            return BundleRule.FACTS_OF_ONE_OPERATION
        if fact.flaw is not None:
            return BundleRule.FACTS_OF_ONE_EXECUTION
    return None


def _broken_by_completion(
    dispatch: Dispatched, observed: Reconciled, outcome: Responded | None, decided: Decided
) -> BundleRule | None:
    if outcome is None:
        return BundleRule.COMPLETED_HAS_OUTCOME
    if not answers(outcome, dispatch):
        return BundleRule.OUTCOME_MATCHES
    if outcome.is_error and observed.observation in FILE_OBSERVATIONS:
        return BundleRule.OUTCOME_SUCCEEDED
    if decided.outcome_event_id != outcome.event_id:
        return BundleRule.OUTCOME_IS_NAMED
    if observed.observation not in COMPLETED_BY.get(dispatch.mode, frozenset()):
        return BundleRule.DECISION_FOLLOWS_OBSERVATION
    return None


def _broken_by_parking(
    dispatch: Dispatched, observed: Reconciled, outcome: Responded | None, decided: Decided
) -> BundleRule | None:
    if outcome is not None or decided.outcome_event_id is not None:
        return BundleRule.PARKED_HAS_NO_OUTCOME
    if decided.disposition != Disposition.PARKED:
        return BundleRule.DECISION_FOLLOWS_OBSERVATION
    if decided.reason != PARKED_BY.get(dispatch.mode, {}).get(observed.observation):
        return BundleRule.DECISION_FOLLOWS_OBSERVATION
    return None


def _broken_by_evidence(
    call: Called, dispatch: Dispatched, observed: Reconciled, outcome: Responded | None, decided: Decided
) -> BundleRule | None:
    causal = (call.event_id, dispatch.event_id, observed.event_id, *((outcome.event_id,) if outcome else ()))
    return None if decided.evidence == causal else BundleRule.EVIDENCE_IN_CAUSAL_ORDER


def answers(response: Responded, dispatch: Dispatched) -> bool:
    """Whether a response is bound to this very dispatch."""
    return (
        response.identity == dispatch.identity
        and response.call_id == dispatch.call_id
        and response.tool_name == dispatch.tool_name
        and response.operation_id == dispatch.operation_id
        and response.flaw is None
    )
