"""A refusal before T1 leaves call and response, no dispatch, and a run that goes on. SPEC section 8, F2."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect
from safepoint.domain.operation.state import Phase, operation_of_call
from safepoint.domain.reasons import ResponseCode, VerdictReason
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.verdict import SettlementOrigin, VerdictStatus
from safepoint.domain.run.decisions import refuse_call
from safepoint.domain.run.ending import end_run

from ..facts import Facts, accepted, refused, run_of, session_of

BEFORE_T1 = [
    ResponseCode.UNKNOWN_TOOL,
    ResponseCode.ARGS_NOT_STRICT_JSON,
    ResponseCode.ARGS_SCHEMA_MISMATCH,
    ResponseCode.ARGS_TOO_LARGE,
    ResponseCode.LOOP_LIMIT,
    ResponseCode.PERMISSION_DENIED,
    ResponseCode.REPEAT_OF_UNSETTLED_EFFECT,
]


def given(r: Facts) -> list[Event]:
    return [r.opened(), r.user(), *r.step("a", "b")]


@pytest.mark.parametrize("code", BEFORE_T1)
def test_r3_154_every_refusal_before_dispatch_leaves_call_and_response_and_a_run_that_ends(code: ResponseCode) -> None:
    r = Facts()
    history = given(r)
    for call in ("a", "b"):
        history += accepted(refuse_call(run_of(history), r.refuse(r.refusal(call, code=code))))
    history += accepted(end_run(session_of([]), run_of(history), r.end(RunStatus.COMPLETED), foreign=False))
    resolution = resolve(run_of(history).tools, foreign=False)
    assert not resolution.issues
    assert [(v.status, v.reason, v.origin, v.effect) for v in resolution.verdicts] == [
        (VerdictStatus.COMPLETED, VerdictReason.MATCHING_RESPONSE, SettlementOrigin.PRE_T1_SYNTHETIC, Effect.NONE)
    ] * 2
    assert not [event for event in history if event.topic == "tool.dispatched.v1"]
    assert history[-1].topic == "run.ended.v1"


def test_a_refused_call_is_settled() -> None:
    r = Facts()
    history = given(r)
    history += accepted(refuse_call(run_of(history), r.refuse(r.refusal("a"))))
    operation = operation_of_call(run_of(history), "a")
    assert operation is not None
    assert operation.phase is Phase.SETTLED


@pytest.mark.parametrize(
    ("call", "fields", "said"),
    [
        ("a", {"call_id": "x"}, "call x was never recorded"),
        ("a", {"operation_id": "op-r-a"}, "no operation and no effect"),
        ("a", {"effect": Effect.DONE}, "no operation and no effect"),
        ("a", {"effect": Effect.UNKNOWN}, "no operation and no effect"),
        ("a", {"is_error": False}, "is an error"),
        ("dispatched", {}, "has its dispatch or answer"),
        ("answered", {}, "has its dispatch or answer"),
        ("refused", {}, "has its dispatch or answer"),
    ],
)
def test_only_a_recorded_call_that_waits_is_refused_and_only_with_an_error(
    call: str, fields: dict[str, Any], said: str
) -> None:
    r = Facts()
    history: list[Event] = [r.opened(), r.user(), *r.step("a", "dispatched", "answered", "refused")]
    history += [r.dispatch("dispatched"), r.dispatch("answered"), r.outcome("answered"), r.refusal("refused")]
    decision = refuse_call(run_of(history), r.refuse(r.refusal(call, **fields)))
    assert refused(decision) == "transition_shape_conflict"
    assert said in decision.detail  # type: ignore[union-attr]


def test_that_the_run_has_ended_is_said_first() -> None:
    r = Facts()
    history = [*given(r), r.ended()]
    assert refused(refuse_call(run_of(history), r.refuse(r.refusal("a", call_id="x")))) == "run_sealed"
