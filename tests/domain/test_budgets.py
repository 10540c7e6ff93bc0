"""What a run has used, from its events alone. ADR 0036."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.budgets import NOTHING, Measure, Spending, Spent, Used
from safepoint.domain.events.event import Event, RunEvent
from safepoint.domain.events.model import ModelStepCompleted, Usage
from safepoint.domain.events.run import Budgets, BudgetSet

from .facts import EventT, Facts


def at(seconds: float) -> str:
    return f"2026-11-29T12:{int(seconds) // 60:02}:{seconds % 60:09.6f}Z"


class Timed(Facts):
    """Facts, each at the second that is set."""

    def __init__(self) -> None:
        super().__init__("r1")
        self.now = 0.0

    def fact(self, of: type[EventT], /, **fields: Any) -> EventT:
        return super().fact(of, **{"occurred_at": at(self.now), **fields})

    def at(self, seconds: float) -> Timed:
        self.now = seconds
        return self


def used(*events: Event) -> Used:
    spending = Spending.of(event for event in events if isinstance(event, RunEvent))
    return spending.used()


def step(r: Timed, tokens: tuple[int, int] | None) -> RunEvent:
    usage = None if tokens is None else Usage(input_tokens=tokens[0], output_tokens=tokens[1])
    made: RunEvent = r.fact(ModelStepCompleted, step_id="s", finish_reason="stop", usage=usage)
    return made


def test_steps_and_tokens_are_those_of_every_completed_step() -> None:
    r = Timed()
    seen = used(r.opened(), r.user(), step(r, (10, 1)), step(r, (20, 2)), step(r, None))
    assert (seen.steps, seen.tokens, seen.unreported) == (3, 33, 1)


def test_what_follows_the_terminal_event_was_not_used_by_the_run() -> None:
    r = Timed()
    events = [r.opened(), *r.step("a"), r.at(1).dispatch("a"), r.at(5).ended(), r.at(500).outcome("a"), step(r, (9, 9))]
    assert used(*events) == Used(steps=1, unreported=1, seconds=5.0)


def test_the_time_from_a_death_to_its_repair_is_nobodys() -> None:
    r = Timed()
    events = [r.opened(), *r.at(7).step("a"), r.at(3_000).refusal("a"), r.ended(recovered=True)]
    assert used(*events).seconds == 7


def test_waiting_for_a_person_is_no_execution() -> None:
    r = Timed()
    calls = r.step("a", "b")
    asked = [r.opened(), r.user(), *calls, r.at(10).requested("a"), r.at(12).requested("b")]
    assert used(*asked).seconds == 10
    assert Spending.of(asked).used(at(40)).seconds == 10
    one = [*asked, r.at(50).decided("ask-a")]
    assert Spending.of(one).used(at(60)).seconds == 10
    both = [*one, r.at(70).decided("ask-b")]
    assert Spending.of(both).used(at(75)).seconds == 15


def test_a_question_that_nobody_answers_stops_no_clock_once_the_call_is_answered() -> None:
    r = Timed()
    events = [r.opened(), r.user(), *r.step("a"), r.at(10).requested("a"), r.at(20).refusal("a")]
    assert Spending.of(events).used(at(25)).seconds == 15


def test_a_clock_that_was_set_back_gives_no_time_back() -> None:
    r = Timed()
    r.now = 30
    assert Spending.of([r.opened()]).used(at(10)).seconds == 0


def test_a_clock_that_was_set_back_counts_on_from_where_it_stands() -> None:
    r = Timed()
    r.now = 1_000
    events: list[RunEvent] = [
        r.opened(),
        *r.step("a"),
        r.at(1_010).dispatch("a"),
        r.at(5).outcome("a"),
        step(r.at(20), None),
    ]
    assert used(*events).seconds == 25
    assert Spending.of(events).used(at(22)).seconds == 27


def test_the_budgets_are_those_that_the_run_recorded() -> None:
    r = Timed()
    budgets = Budgets(steps_max=3)
    assert Spending.of([r.opened()]).budgets is None
    assert Spending.of([r.opened(), r.fact(BudgetSet, budgets=budgets)]).budgets == budgets


@pytest.mark.parametrize(
    ("budgets", "have", "spent"),
    [
        (None, Used(99, 99, 9, 99.0), None),
        (Budgets(), Used(99, 99, 9, 99.0), None),
        (Budgets(steps_max=3), Used(2), None),
        (Budgets(steps_max=3), Used(3), Spent(Measure.STEPS, 3, 3)),
        (Budgets(tokens_max=10), Used(9, 9), None),
        (Budgets(tokens_max=10), Used(9, 12), Spent(Measure.TOKENS, 12, 10)),
        (Budgets(tokens_max=10), Used(1, 0, 1), Spent(Measure.TOKENS, None, 10)),
        (Budgets(seconds_max=10), Used(1, 0, 1, 9.9), None),
        (Budgets(seconds_max=10), Used(1, 0, 1, 10.5), Spent(Measure.SECONDS, 10, 10)),
    ],
)
def test_a_budget_is_spent_when_nothing_is_left_of_it(budgets: Budgets | None, have: Used, spent: Spent | None) -> None:
    assert have.spent(budgets) == spent


def test_a_lineage_has_used_what_its_runs_have() -> None:
    assert sum([Used(1, 2, 0, 3.0), Used(4, 5, 1, 6.0)], NOTHING) == Used(5, 7, 1, 9.0)
