"""T1 and T2 as the tool boundary makes them are what validating their parts would make. SPEC section 21."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.application.preflight import Admitted
from safepoint.application.tool_facts import dispatch_of, response_of
from safepoint.domain.events.tool import Effect, Life, RecoveryMode, ToolCalled, ToolDispatched, ToolResponded
from safepoint.domain.identifiers import EventId, GrantId, IncarnationId, OperationId
from safepoint.domain.reasons import ResponseCode
from safepoint.domain.tool_results import PreparedResult, prepare_result

from ..domain.facts import AT, Facts, contract
from ..domain.test_assembling import are_one

texts = st.text(st.characters(exclude_categories=["Cs"]))  # a lone surrogate has no stored form
strict_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # a lone surrogate has no stored form
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=6,
)


@given(
    evidence=strict_json,
    mode=st.sampled_from(RecoveryMode),
    life=st.sampled_from(Life),
    grant=st.none() | st.just(GrantId("grant")),
    repeats=st.none() | st.just(OperationId("earlier")),
)
def test_t1_is_what_validating_makes_of_its_parts(
    evidence: Any, mode: RecoveryMode, life: Life, grant: GrantId | None, repeats: OperationId | None
) -> None:
    r = Facts()
    call = _call(r)
    bound: Any = _Bound(contract(mode), life)
    admitted = Admitted(bound, "0" * 64, grant, repeats)
    made = dispatch_of(_spine(r), call, admitted, OperationId("op"), IncarnationId("i"), evidence)
    are_one(made, ToolDispatched.model_validate(dict(made)))


@given(
    result=strict_json,
    effect=st.sampled_from(Effect),
    operation_id=st.none() | st.just(OperationId("op")),
    code=st.none() | st.sampled_from(ResponseCode),
    is_error=st.booleans(),
    bytes_max=st.sampled_from([2, 8, 1000]),
)
def test_t2_is_what_validating_makes_of_its_parts(
    result: Any,
    effect: Effect,
    operation_id: OperationId | None,
    code: ResponseCode | None,
    is_error: bool,
    bytes_max: int,
) -> None:
    r = Facts()
    prepared = prepare_result(result, effect=effect, bytes_max=bytes_max)
    said = PreparedResult(
        prepared.result, is_error, effect, code or prepared.code, prepared.original_length, prepared.original_digest
    )
    made = response_of(_spine(r), _call(r), operation_id, said)
    are_one(made, ToolResponded.model_validate(dict(made)))


@pytest.mark.parametrize("evidence", [{1: "a"}, {"a": {2.5}}, float("nan"), "\ud800", b"bytes", ("a",)])
def test_evidence_that_is_no_strict_json_is_refused(evidence: Any) -> None:
    r = Facts()
    bound: Any = _Bound(contract(RecoveryMode.RECONCILE), Life.TASK)
    with pytest.raises(ValueError, match=r"."):
        dispatch_of(_spine(r), _call(r), Admitted(bound, "0" * 64), OperationId("op"), IncarnationId("i"), evidence)


def test_a_text_that_has_no_stored_form_is_refused_as_a_result() -> None:
    r = Facts()
    with pytest.raises(ValueError, match="surrogates"):
        response_of(_spine(r), _call(r), None, PreparedResult("\ud800", is_error=True, effect=Effect.NONE))


class _Bound:
    """What `dispatch_of` asks of a bound call."""

    def __init__(self, its_contract: Any, life: Life) -> None:
        self.contract = its_contract
        self.life = life


def _spine(r: Facts) -> Any:
    return {"event_id": EventId("event"), "occurred_at": AT, **r.identity._asdict()}


def _call(r: Facts) -> ToolCalled:
    r.step("a")
    return r.called["a"]
