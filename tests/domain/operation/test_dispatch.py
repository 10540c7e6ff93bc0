"""T1: a call is dispatched once, as it was recorded, and when nothing forbids its effect. SPEC sections 7 and 8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.domain.canonical import args_hash
from safepoint.domain.events.event import Event
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import GrantsTaken
from safepoint.domain.events.tool import RecoveryMode, ToolDispatched
from safepoint.domain.operation.decisions import prepare
from safepoint.domain.session.state import Session

from ..facts import Facts, contract, prefix, refused, run_of, session_of, topics

Given = Callable[[Facts], list[Event]]
Make = Callable[[Facts], ToolDispatched]


def called(r: Facts) -> list[Event]:
    return [r.opened(), r.user(), *r.step("a", "b")]


def decide(given: list[Event], r: Facts, dispatch: ToolDispatched, session: Session | None = None) -> Any:
    return prepare(session or Session(), run_of(given), r.prepare(dispatch))


def test_a_recorded_call_is_dispatched_once() -> None:
    r = Facts()
    given = called(r)
    assert topics(decide(given, r, r.dispatch("a"))) == ["tool.dispatched.v1"]
    given += [r.dispatch("a")]
    again = r.dispatch("a", operation_id="op-2")
    assert refused(decide(given, r, again)) == "transition_shape_conflict"
    assert topics(decide(given, r, r.dispatch("b"))) == ["tool.dispatched.v1"]


REFUSED: dict[str, tuple[Given, Make]] = {
    "a call that was never recorded": (called, lambda r: r.dispatch("a", call_id="x")),
    "an answered call": (lambda r: [*called(r), r.refusal("a")], lambda r: r.dispatch("a")),
    "other arguments": (called, lambda r: r.dispatch("a", args_hash=args_hash("write", {"path": "z"}))),
    "the hash of another tool": (called, lambda r: r.dispatch("a", args_hash=args_hash("rm", {"path": "a"}))),
    "another tool": (called, lambda r: r.dispatch("a", tool_name="rm")),
    "arguments that were no strict JSON": (
        lambda r: [
            *called(r)[:2],
            *(fact.model_copy(update={"args": None, "args_text": "{"} if "args" in fact.model_fields_set else {})
              for fact in r.step("a")),
        ],
        lambda r: r.dispatch("a", args_hash=args_hash("write", None)),
    ),
    "an idempotent call without a key": (called, lambda r: r.dispatch("a", RecoveryMode.IDEMPOTENT)),
}  # fmt: skip


@pytest.mark.parametrize(("given", "make"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_of_a_waiting_call_is_refused(given: Given, make: Make) -> None:
    r = Facts()
    history = given(r)
    assert refused(decide(history, r, make(r))) == "transition_shape_conflict"


def test_an_idempotent_call_is_dispatched_with_its_key() -> None:
    r = Facts()
    given = called(r)
    dispatch = r.dispatch("a", RecoveryMode.IDEMPOTENT, idempotency_key="k")
    assert topics(decide(given, r, dispatch)) == ["tool.dispatched.v1"]


@pytest.mark.parametrize("make", [lambda r: r.dispatch("a"), *(make for _, make in REFUSED.values())])
@pytest.mark.parametrize("seal", ["cancel requested", "ended", "claimed", "never opened"])
def test_that_a_run_is_stopped_sealed_or_claimed_is_said_first(seal: str, make: Make) -> None:
    r = Facts()
    given = called(r)
    dispatch = make(r)
    match seal:
        case "cancel requested":
            given, code = [*given, r.cancelled()], "run_sealed"
        case "ended":
            given, code = [*given, r.ended(RunStatus.CANCELLED)], "run_sealed"
        case "claimed":
            given += [r.ended()]
            given, code = [*given, r.claim(Facts("r2"), [prefix(r, given)]).claimed], "run_claimed"
        case _:
            given, code = [], "transition_shape_conflict"
    assert refused(decide(given, r, dispatch)) == code


# ---- permissions -----------------------------------------------------------------------------------------------------

ASKED: dict[str, tuple[Given, bool]] = {
    "approved": (lambda r: [r.requested("a"), r.decided("ask-a")], True),
    "asked about another call": (lambda r: [r.requested("b")], True),
    "undecided": (lambda r: [r.requested("a")], False),
    "denied": (lambda r: [r.requested("a"), r.decided("ask-a", approved=False)], False),
    "asked for another contract": (
        lambda r: [r.requested("a", contract_digest="e" * 64), r.decided("ask-a")],
        False,
    ),
    "asked for other arguments": (lambda r: [r.requested("a", args_hash="e" * 64), r.decided("ask-a")], False),
    "asked twice and answered once": (
        lambda r: [r.requested("a", "q1"), r.requested("a", "q2"), r.decided("q1")],
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "allowed"), ASKED.values(), ids=ASKED)
def test_whatever_was_asked_about_a_call_must_have_been_answered_with_yes(asked: Given, allowed: bool) -> None:
    r = Facts()
    given = called(r)
    given += asked(r)
    decision = decide(given, r, r.dispatch("a"))
    assert (topics(decision) if allowed else refused(decision)) == (
        ["tool.dispatched.v1"] if allowed else "transition_shape_conflict"
    )


GRANTS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "given for exactly this": ({}, {"grant_id": "g1"}, True),
    "a denial": ({"approved": False}, {"grant_id": "g1"}, False),
    "for another tool": ({"tool_name": "rm"}, {"grant_id": "g1"}, False),
    "for other arguments": ({"args_hash": "e" * 64}, {"grant_id": "g1"}, False),
    "for another contract": ({"contract_digest": "e" * 64}, {"grant_id": "g1"}, False),
    "never given": ({}, {"grant_id": "g9"}, False),
    "for a contract that has changed": ({}, {"grant_id": "g1", "contract": contract(digest="e" * 64)}, False),
}


@pytest.mark.parametrize(("grant", "dispatch", "allowed"), GRANTS.values(), ids=GRANTS)
def test_a_dispatch_uses_only_a_grant_that_its_run_took_over_for_exactly_this(
    grant: dict[str, Any], dispatch: dict[str, Any], allowed: bool
) -> None:
    r = Facts()
    given = called(r)
    posted = r.grant(r.requested("a"), **grant)
    taken = r.fact(GrantsTaken, run_id="r", grant_ids=("g1",))
    decision = decide(given, r, r.dispatch("a", **dispatch), session_of([r.admitted(), posted, taken]))
    assert (topics(decision) == ["tool.dispatched.v1"]) if allowed else refused(decision)


@pytest.mark.parametrize("why", ["not taken over", "lapsed"])
def test_a_grant_of_another_time_is_none(why: str) -> None:
    r = Facts()
    given = called(r)
    posted = r.grant(r.requested("a"))
    taken = r.fact(GrantsTaken, run_id="r", grant_ids=("g1",))
    session = [posted] if why == "not taken over" else [posted, taken, Facts("r9").admitted()]
    assert refused(decide(given, r, r.dispatch("a", grant_id="g1"), session_of(session)))


def test_a_grant_is_used_once() -> None:
    """An approval does not run twice. F6."""
    r = Facts()
    given: list[Event] = [r.opened(), r.user(), *r.step("a", "b", args={"x": 1})]
    posted = r.grant(r.requested("a"))
    session = session_of([posted, r.fact(GrantsTaken, run_id="r", grant_ids=("g1",))])
    first = r.dispatch("a", grant_id="g1")
    assert topics(decide(given, r, first, session)) == ["tool.dispatched.v1"]
    assert refused(decide([*given, first], r, r.dispatch("b", grant_id="g1"), session))
