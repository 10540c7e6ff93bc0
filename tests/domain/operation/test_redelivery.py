"""A second delivery: only of an open idempotent operation, with its recorded, valid key. SPEC section 7."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.tool import RecoveryMode
from safepoint.domain.operation.decisions import start_redelivery
from safepoint.domain.operation.state import operation_by_id

from ..facts import AT, LATER, Facts, accepted, contract, prefix, refused, run_of, topics

EARLIER = "2026-11-29T11:59:59.999999Z"


def given(r: Facts, mode: RecoveryMode = RecoveryMode.IDEMPOTENT, **promised: Any) -> list[Event]:
    history: list[Event] = [r.opened(), r.user(), *r.step("a", "b")]
    return [*history, r.dispatch("a", contract=contract(mode, **promised), idempotency_key="key"), r.ended()]


def test_an_open_idempotent_operation_is_delivered_again_and_again() -> None:
    r = Facts()
    history = given(r)
    for _ in range(2):
        decision = start_redelivery(run_of(history), r.redelivery("a"))
        assert topics(decision) == ["tool.redelivery_started.v1"]
        history += accepted(decision)
    operation = operation_by_id(run_of(history), "op-r-a")
    assert operation is not None
    assert [one.topic for one in operation.deliveries] == ["tool.dispatched.v1", *["tool.redelivery_started.v1"] * 2]
    assert operation.dispatch == operation.deliveries[0]


@pytest.mark.parametrize("mode", [mode for mode in RecoveryMode if mode is not RecoveryMode.IDEMPOTENT])
def test_no_other_promise_allows_it(mode: RecoveryMode) -> None:
    r = Facts()
    history = given(r, mode)
    assert refused(start_redelivery(run_of(history), r.redelivery("a"))) == "bundle_invalid"


@pytest.mark.parametrize(
    ("seconds", "now", "allowed"),
    [
        (None, "9999-12-31T23:59:59.999999Z", True),
        (None, EARLIER, True),
        (10, AT, True),
        (10, LATER, True),
        (9, LATER, False),
        (10, EARLIER, False),
    ],
    ids=["no bound", "no bound, clock set back", "at once", "on its last instant", "later", "clock set back"],
)
def test_a_key_that_is_no_longer_valid_means_another_delivery(seconds: int | None, now: str, allowed: bool) -> None:
    r = Facts()
    history = given(r, key_valid_seconds=seconds)
    decision = start_redelivery(run_of(history), r.redelivery("a", now=now))
    if allowed:
        assert topics(decision) == ["tool.redelivery_started.v1"]
    else:
        assert refused(decision) == "bundle_invalid"
        assert "idempotency_key_expired" in decision.detail  # type: ignore[union-attr]


def test_another_key_is_another_delivery() -> None:
    r = Facts()
    history = given(r)
    assert refused(start_redelivery(run_of(history), r.redelivery("a", key="other"))) == "bundle_invalid"


@pytest.mark.parametrize("call", ["b", "x"])
def test_what_was_never_dispatched_cannot_be_delivered_again(call: str) -> None:
    r = Facts()
    history = given(r)
    assert refused(start_redelivery(run_of(history), r.redelivery(call))) == "transition_shape_conflict"


def test_what_has_its_outcome_is_not_delivered_again() -> None:
    r = Facts()
    *history, ended = given(r)
    settled = [*history, r.outcome("a"), ended]
    assert refused(start_redelivery(run_of(settled), r.redelivery("a"))) == "transition_shape_conflict"


def test_only_after_the_end_and_before_a_claim() -> None:
    r = Facts()
    history = given(r)
    claimed = [*history, r.claim(Facts("r2"), [prefix(r, history)]).claimed]
    assert refused(start_redelivery(run_of(claimed), r.redelivery("x"))) == "run_claimed"
    assert refused(start_redelivery(run_of(history[:-1]), r.redelivery("a"))) == "transition_shape_conflict"
