"""The recorded cases of Maka: every conformance module reads them from here."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from safepoint.adapters.interchange import maka_json
from safepoint.domain.recovery.bundle_rules import BundleRule

Case: TypeAlias = dict[str, Any]
Cases: TypeAlias = Mapping[str, Sequence[Case]]

_FILE = Path(__file__).with_name("maka-open.jsonl.gz")


@pytest.fixture(scope="session")
def cases() -> Cases:
    """The cases by group; spellings such as `-0` and lone surrogates are part of the input and survive."""
    groups: dict[str, list[Case]] = defaultdict(list)
    # Split on "\n" alone: strings may hold other line separators.
    for line in gzip.decompress(_FILE.read_bytes()).decode().split("\n"):
        if line:
            case: Any = maka_json.parse(line)
            groups[case["group"]].append(case)
    return groups


@pytest.fixture(scope="session")
def ledgers(cases: Cases) -> Sequence[Case]:
    """The cases of all groups that hold a whole ledger and what was said of it."""
    return [case for group in cases.values() for case in group if "events" in case and "scan" in case["expect"]]


@pytest.fixture(scope="session")
def bundle_rules() -> Mapping[str, BundleRule]:
    """The original's codes for a bad bundle, and the rules of ours that they mean."""
    return _RULES


_RULES = {
    "call_identity_conflict": BundleRule.CALL_MATCHES,
    "canonical_args_hash_conflict": BundleRule.ARGUMENTS_MATCH,
    "decision_fact_invalid": BundleRule.DECISION_WELL_FORMED,
    "dispatch_identity_conflict": BundleRule.DISPATCH_MATCHES,
    "event_order_conflict": BundleRule.FACTS_IN_CAUSAL_ORDER,
    "evidence_order_conflict": BundleRule.EVIDENCE_IN_CAUSAL_ORDER,
    "operation_identity_conflict": BundleRule.FACTS_OF_ONE_OPERATION,
    "outcome_for_parked": BundleRule.PARKED_HAS_NO_OUTCOME,
    "outcome_identity_conflict": BundleRule.OUTCOME_MATCHES,
    "outcome_not_successful": BundleRule.OUTCOME_SUCCEEDED,
    "outcome_reference_conflict": BundleRule.OUTCOME_IS_NAMED,
    "outcome_required": BundleRule.COMPLETED_HAS_OUTCOME,
    "reconcile_decision_conflict": BundleRule.DECISION_FOLLOWS_OBSERVATION,
    "reconcile_fact_invalid": BundleRule.OBSERVATION_WELL_FORMED,
    "recovery_fact_identity_conflict": BundleRule.FACTS_OF_ONE_EXECUTION,
    "recovery_fact_shape_conflict": BundleRule.ONE_OBSERVATION_ONE_DECISION,
    "recovery_mode_unsupported": BundleRule.MODE_ALLOWS,
}
