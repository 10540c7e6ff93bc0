"""A model step is recorded whole, when the provider finished it. SPEC sections 5 and 8, F5."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safepoint.domain.commands import StepFact
from safepoint.domain.events.event import Event
from safepoint.domain.run.decisions import record_step

from ..facts import Facts, refused, run_of, topics

Make = Callable[[Facts], tuple[StepFact, ...]]


def given(r: Facts) -> list[Event]:
    return [r.opened(), r.user(), *r.step("a"), r.dispatch("a"), r.outcome("a")]


def test_text_calls_and_completion_are_one_commit() -> None:
    r = Facts()
    history = given(r)
    decision = record_step(run_of(history), r.record(r.step("b", "c", text="now")))
    assert topics(decision) == ["model.text.v1", "tool.called.v1", "tool.called.v1", "model.step_completed.v1"]


def test_a_step_without_calls_is_a_step() -> None:
    r = Facts()
    assert topics(record_step(run_of(given(r)), r.record(r.step(text="done")))) == [
        "model.text.v1",
        "model.step_completed.v1",
    ]


REFUSED: dict[str, Make] = {
    "nothing": lambda _: (),
    "no completion": lambda r: r.step("b")[:-1],
    "a completion in the middle": lambda r: tuple(reversed(r.step("b", text="x"))),
    "two steps at once": lambda r: (*r.step("b"), *r.step("c")),
    "a call id of this run": lambda r: r.step("a"),
    "a call id twice": lambda r: r.step("b", "b"),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_half_a_step_or_a_used_call_id_is_refused(make: Make) -> None:
    r = Facts()
    history = given(r)
    assert refused(record_step(run_of(history), r.record(make(r)))) == "transition_shape_conflict"


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_that_the_run_has_ended_is_said_first(make: Make) -> None:
    r = Facts()
    history = [*given(r), r.ended()]
    assert refused(record_step(run_of(history), r.record(make(r)))) == "run_sealed"
