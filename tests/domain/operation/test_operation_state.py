"""The state machine of one operation: called, dispatched, settled or parked. SPEC section 3."""

from __future__ import annotations

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.session import WatchStatus
from safepoint.domain.events.tool import Effect, Observation, RecoveryMode
from safepoint.domain.operation.state import (
    Phase,
    operation_by_id,
    operation_of_call,
    operations_of,
    unanswered_of,
)

from ..facts import Facts, contract, run_of


def given(r: Facts) -> list[Event]:
    history: list[Event] = [r.opened(), *r.step("called", "dispatched", "done", "refused", "unknown")]
    history += [r.dispatch("unknown"), r.dispatch("dispatched"), r.dispatch("done")]
    history += [r.outcome("done"), r.refusal("refused")]
    return [*history, r.outcome("unknown", is_error=True, effect=Effect.UNKNOWN)]


@pytest.mark.parametrize(
    ("call", "phase", "uncertainty"),
    [
        ("called", Phase.CALLED, None),
        ("dispatched", Phase.DISPATCHED, WatchStatus.INDETERMINATE),
        ("done", Phase.SETTLED, None),
        ("refused", Phase.SETTLED, None),
        ("unknown", Phase.SETTLED, WatchStatus.UNKNOWN),
    ],
)
def test_each_fact_moves_an_operation_on(call: str, phase: Phase, uncertainty: WatchStatus | None) -> None:
    r = Facts()
    operation = operation_of_call(run_of(given(r)), call)
    assert operation is not None
    assert (operation.phase, operation.uncertainty) == (phase, uncertainty)


def test_operations_come_in_call_order_and_unanswered_ones_alone() -> None:
    r = Facts()
    run = run_of(given(r))
    assert [one.call_id for one in operations_of(run)] == ["called", "dispatched", "done", "refused", "unknown"]
    assert [one.call_id for one in unanswered_of(run)] == ["called", "dispatched"]


def test_an_operation_knows_what_was_asked_and_promised() -> None:
    r = Facts()
    promised = contract(RecoveryMode.IDEMPOTENT, key_valid_seconds=60)
    history: list[Event] = [r.opened(), *r.step("a", "b", args={"x": 1})]
    history += [r.dispatch("a", contract=promised, idempotency_key="k")]
    a, b = operations_of(run_of(history))
    assert (a.tool_name, a.args, a.args_hash) == ("write", {"x": 1}, r.dispatch("a").args_hash)
    assert (a.operation_id, a.mode, a.idempotency_key) == ("op-r-a", RecoveryMode.IDEMPOTENT, "k")
    assert a.key_valid_until == "2026-11-29T12:01:00.000000Z"
    assert (b.operation_id, b.mode, b.idempotency_key, b.key_valid_until, b.dispatch) == (None,) * 5


def test_an_unknown_call_or_operation_is_none() -> None:
    r = Facts()
    run = run_of(given(r))
    assert operation_of_call(run, "x") is None
    assert operation_by_id(run, "x") is None
    assert operation_by_id(run, "op-r-called") is None


def test_of_all_that_recovery_wrote_only_a_persons_statement_attests() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), *r.step("a")]
    delivered = r.dispatch("a", RecoveryMode.IDEMPOTENT, idempotency_key="key")
    history += [delivered, r.ended(), r.redelivery("a").started]
    unknown = r.outcome("a", is_error=True, effect=Effect.UNKNOWN)
    bundle = r.recovery(delivered, 0, observation=Observation.REDELIVERED, outcome=unknown)
    history += [bundle.reconciled, unknown, bundle.decided]
    before = operation_by_id(run_of(history), "op-r-a")
    after = operation_by_id(run_of([*history, r.attestation("a", 0).attested]), "op-r-a")
    assert before is not None
    assert after is not None
    assert (before.attested, before.uncertainty) == (False, WatchStatus.UNKNOWN)
    assert (after.attested, after.uncertainty) == (True, None)
