"""What holds for the importer beyond the recorded cases: it judges anything, and its encoding is stable."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from safepoint.adapters.interchange import maka_collation, maka_envelope, maka_facts, maka_json
from safepoint.adapters.interchange.maka_envelope import MakaFormatError
from safepoint.domain.recovery.resolver import resolve

ENVELOPE_KEYS = ["id", "sessionId", "invocationId", "runId", "turnId", "role", "author", "content", "actions", "refs"]
INNER_KEYS = ["kind", "name", "args", "toolDispatch", "toolRecovery", "payload", "operationId", "toolCallId", "status"]
OTHER_KEYS = ["partial", "stateDelta", "runtimeProtocol", "toolBoundary", "evidenceEventIds"]
KEYS = st.sampled_from(ENVELOPE_KEYS + INNER_KEYS + OTHER_KEYS)
KINDS = ["function_call", "function_response", "maka.tool.reconcile_result", "maka.tool.recovery_decision"]
OTHER_WORDS = ["model", "agent", "tool", "system", "c1", "o1", "t1_after_preflight_v1", "completed"]
WORDS = st.sampled_from(KINDS + OTHER_WORDS) | st.text(max_size=3)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=8),
    max_leaves=25,
)


@given(st.lists(ANYTHING, max_size=6))
def test_any_json_can_be_judged(envelopes: list[Any]) -> None:
    resolution = resolve(maka_facts.scan(envelopes), foreign=True)
    assert not any(verdict.status == "definitely_not_dispatched" for verdict in resolution.verdicts)


@given(ANYTHING)
def test_any_json_is_an_envelope_or_is_refused(value: Any) -> None:
    try:
        text = maka_envelope.canonical_text(value)
    except MakaFormatError:
        return
    assert maka_envelope.canonical_text(maka_json.parse(text)) == text


@given(ANYTHING)
def test_canonical_json_is_stable_and_keeps_the_value(value: Any) -> None:
    text = maka_json.canonical(value)
    assert maka_json.canonical(maka_json.parse(text)) == text
    assert maka_json.canonical(json.loads(text)) == maka_json.canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same_double(double: float) -> None:
    printed = maka_json.ecmascript_number(double)
    assert float(printed) == double
    assert "." not in printed or not printed.partition("e")[0].endswith("0")
    assert math.copysign(1, float(printed)) == math.copysign(1, double) or double == 0


@given(st.lists(st.text(max_size=4), max_size=6))
def test_collation_is_a_total_order_that_ignores_case_first(words: list[str]) -> None:
    once = sorted(words, key=maka_collation.collation_key)
    assert sorted(once, key=maka_collation.collation_key) == once
    assert sorted(["b", "A", "a", "B"], key=maka_collation.collation_key) == ["a", "A", "b", "B"]
