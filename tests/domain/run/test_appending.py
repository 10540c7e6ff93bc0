"""Ordinary facts of an open run: what its state allows, and nothing of the tool boundary. SPEC section 7."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import pytest

from safepoint.domain.canonical import args_hash
from safepoint.domain.commands import LateFact, OrdinaryFact, StepFact
from safepoint.domain.events.catalogue import AFTER_TERMINAL
from safepoint.domain.events.event import Event
from safepoint.domain.events.model import HostMessage, ProviderAttempted
from safepoint.domain.events.outside import BackgroundSettled, WorkspaceRenewed
from safepoint.domain.events.run import RunError
from safepoint.domain.run.decisions import append

from ..facts import WRITE, Facts, prefix, refused, run_of, topics

Make = Callable[[Facts], list[OrdinaryFact]]


def given(r: Facts) -> list[Event]:
    """A step with two calls: `a` waits for its dispatch, `b` left a job running."""
    step = r.step("a", "b", args=WRITE)
    return [r.opened(), r.user(), *step, r.dispatch("b"), r.outcome("b"), r.left_running("b")]


def settled(r: Facts, handle: str = "job-b") -> BackgroundSettled:
    return r.fact(BackgroundSettled, handle_id=handle, status="ended")


ALLOWED: dict[str, Make] = {
    "a steering message": lambda r: [r.user("hurry", steering=True)],
    "a host message": lambda r: [r.fact(HostMessage, sentence_id="host_note", text="note")],
    "an error": lambda r: [r.fact(RunError, error_class="E", code="provider_failed")],
    "a failed attempt": lambda r: [r.fact(ProviderAttempted, attempt=1, failure="rate_limited")],
    "a stop": lambda r: [r.cancelled()],
    "a workspace fact": lambda r: [r.fact(WorkspaceRenewed, from_identity="a", to_identity="b")],
    "the end of a job": lambda r: [settled(r)],
    "a question about a call that waits": lambda r: [r.requested("a")],
    "a question and its answer": lambda r: [r.requested("a"), r.decided("ask-a")],
    "two questions about one call": lambda r: [r.requested("a", "q1"), r.requested("a", "q2")],
}


@pytest.mark.parametrize("make", ALLOWED.values(), ids=ALLOWED)
def test_an_open_run_takes_ordinary_facts(make: Make) -> None:
    r = Facts()
    history = given(r)
    facts = make(r)
    assert topics(append(run_of(history), r.append(*facts))) == [fact.topic for fact in facts]


REFUSED: dict[str, Make] = {
    "nothing": lambda _: [],
    "a message that would begin a turn": lambda r: [r.user("more")],
    "the end of a job that never ran": lambda r: [settled(r, "job-x")],
    "the end of a job twice": lambda r: [settled(r), settled(r)],
    "an answer to nothing": lambda r: [r.decided("ask-x")],
    "an answer before its question": lambda r: [r.decided("ask-a"), r.requested("a")],
    "two answers": lambda r: [r.requested("a"), r.decided("ask-a"), r.decided("ask-a", approved=False)],
    "one request id twice": lambda r: [r.requested("a", "q"), r.requested("a", "q")],
    "a question about an unknown call": lambda r: [r.requested("a", call_id="x")],
    "a question about an answered call": lambda r: [r.requested("b")],
    "a question about other arguments": lambda r: [r.requested("a", args_hash=args_hash("write", {"path": "b"}))],
    "a question about another tool": lambda r: [r.requested("a", tool_name="read")],
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_the_state_does_not_allow_is_refused_whole(make: Make) -> None:
    r = Facts()
    history = given(r)
    assert refused(append(run_of(history), r.append(*make(r)))) == "transition_shape_conflict"


Seals = Callable[[Facts, Sequence[Event]], list[Event]]
SEALED: dict[str, tuple[Seals, str]] = {
    "never opened": (lambda _, history: [*history[:0]], "transition_shape_conflict"),
    "ended": (lambda r, history: [*history, r.ended()], "run_sealed"),
    "claimed": (
        lambda r, history: [
            *history,
            (end := r.ended()),
            r.claim(Facts("r2"), [prefix(r, [*history, end])]).claimed,
        ],
        "run_claimed",
    ),
}


@pytest.mark.parametrize(("seal", "code"), SEALED.values(), ids=SEALED)
@pytest.mark.parametrize("make", [*ALLOWED.values(), *REFUSED.values()], ids=[*ALLOWED, *REFUSED])
def test_that_a_run_is_sealed_or_claimed_is_said_before_anything_else(make: Make, seal: Seals, code: str) -> None:
    """An event after the terminal one is a normal end of a race, whatever it is. F3."""
    r = Facts()
    history = given(r)
    facts = make(r)
    assert refused(append(run_of(seal(r, history)), r.append(*facts))) == code


def test_a_command_cannot_express_facts_that_it_may_not_write() -> None:
    def names(union: object) -> set[str]:
        return {cls.topic for cls in get_args(union)}

    boundary = {"tool.called.v1", "tool.dispatched.v1", "tool.responded.v1", "tool.redelivery_started.v1"}
    recovery = {"tool.reconciled.v1", "tool.recovery_decided.v1", "tool.attested.v1"}
    ends = {"run.ended.v1", "run.claimed.v1", "run.opened.v1", "continuation.started.v1", "permission.closed.v1"}
    assert not names(OrdinaryFact) & (boundary | recovery | ends | {"background.started.v1"})
    assert names(StepFact) == {"model.text.v1", "model.thinking.v1", "tool.called.v1", "model.step_completed.v1"}
    assert names(LateFact) < AFTER_TERMINAL
