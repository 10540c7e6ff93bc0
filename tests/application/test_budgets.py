"""A turn may use so many steps, tokens and seconds, over its whole lineage, across deaths. ADR 0036."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls, says
from safepoint.adapters.system.clock import SystemClock
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Continued, Parked
from safepoint.application.run_turn import TurnResult
from safepoint.domain.events.model import ModelStepCompleted, Usage
from safepoint.domain.events.run import Budgets, BudgetSet, RunError, RunStatus
from safepoint.domain.reasons import FailureClass, ParkReason
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.model_step import StepFinished

from .counted_tools import Counted
from .resuming import Killed, killing
from .wiring import Process, World, check_sound, go

ACT = calls(("act", {"n": 1}))


def using(step: Planned, tokens: int) -> Planned:
    """A step with a report of what it used."""
    assert isinstance(step, StepFinished)
    return replace(step, usage=Usage(input_tokens=tokens - 1, output_tokens=1))


def turn(process: Process, steps: Sequence[Planned], act: Counted, budgets: Budgets | None) -> TurnResult:
    return go(lambda: process.turn("go", PlannedModel(list(steps)), [act.function], budgets=budgets))


def test_a_turn_that_has_used_its_steps_ends_after_the_calls_of_the_last_one() -> None:
    process, act = Process(), Counted()
    result = turn(process, [ACT] * 5, act, Budgets(steps_max=2))
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.STEP_LIMIT)
    assert result.outcome.detail == "the turn has used 2 of the 2 steps that it may use"
    assert act.calls == [1, 1]
    (error,) = process.of(result.run_id, RunError)
    assert (error.error_class, error.code) == ("StepsSpent", "step_limit")
    check_sound(process, result.run_id)


def test_a_turn_that_says_what_it_has_to_say_with_its_last_step_is_completed() -> None:
    process, act = Process(), Counted()
    result = turn(process, [ACT, says("done")], act, Budgets(steps_max=2))
    assert result.outcome.status is RunStatus.COMPLETED


def test_tokens_are_counted_as_they_are_reported() -> None:
    process, act = Process(), Counted()
    result = turn(process, [using(ACT, 60)] * 3, act, Budgets(tokens_max=100))
    assert result.outcome.detail == "the turn has used 120 of the 100 tokens that it may use"
    (error,) = process.of(result.run_id, RunError)
    assert (error.error_class, error.code) == ("TokensSpent", "step_limit")


def test_what_the_provider_does_not_report_cannot_be_kept_within_a_budget_and_ends_the_turn() -> None:
    process, act = Process(), Counted()
    result = turn(process, [ACT] * 3, act, Budgets(tokens_max=100))
    assert result.outcome.failure is FailureClass.STEP_LIMIT
    assert "an unknown number of the 100 tokens" in result.outcome.detail
    assert len(process.of(result.run_id, ModelStepCompleted)) == 1


def test_seconds_are_those_of_execution() -> None:
    clock = ManualClock()
    process = Process(clock=clock)

    def act(n: int) -> str:
        """Act."""
        clock.advance(30)
        return "acted"

    result = go(lambda: process.turn("go", PlannedModel([ACT] * 5), [act], budgets=Budgets(seconds_max=50)))
    assert result.outcome.failure is FailureClass.STEP_LIMIT
    assert len(process.of(result.run_id, ModelStepCompleted)) == 2
    (error,) = process.of(result.run_id, RunError)
    assert error.error_class == "SecondsSpent"


# Over a lineage


def killed_turn(world: World, act: Counted, budgets: Budgets, clock: Any = None) -> None:
    """A turn that dies after its first step's calls."""
    process = Process(world, at_failpoint=killing(Failpoint.RESULT_DELIVERED), clock=clock or SystemClock())
    with pytest.raises(Killed):
        turn(process, [using(ACT, 60), says("never")], act, budgets)
    process.die()


@pytest.mark.parametrize(
    ("budgets", "steps"), [(Budgets(steps_max=3), 2), (Budgets(tokens_max=150), 2), (Budgets(tokens_max=110), 1)]
)
def test_a_continuation_counts_what_its_ancestors_used(budgets: Budgets, steps: int) -> None:
    world, act = World(), Counted()
    killed_turn(world, act, budgets)
    process = Process(world)
    resumed = go(lambda: process.resume([using(ACT, 60)] * 5, [act.function]))
    assert isinstance(resumed, Continued)
    assert resumed.outcome.failure is FailureClass.STEP_LIMIT
    assert len(process.of(resumed.run_id, ModelStepCompleted)) == steps
    assert [event.budgets for event in process.of(resumed.run_id, BudgetSet)] == [budgets]
    check_sound(process, resumed.run_id)


def test_the_time_that_a_run_was_dead_does_not_count() -> None:
    world, act, clock = World(), Counted(), ManualClock()
    killed_turn(world, act, Budgets(seconds_max=100), clock)
    clock.advance(3_600)
    process = Process(world, clock=clock)
    resumed = go(lambda: process.resume([says("done")], [act.function]))
    assert isinstance(resumed, Continued)
    assert resumed.outcome.status is RunStatus.COMPLETED


def test_a_turn_whose_budget_is_spent_parks_until_a_person_gives_a_new_one() -> None:
    world, act = World(), Counted()
    process = Process(world)
    turn(process, [ACT] * 5, act, Budgets(steps_max=2))
    for budgets in (None, Budgets(steps_max=2), Budgets(steps_max=1)):
        request = PlanRequest(budgets=budgets)
        parked = go(partial(process.resume, [says("no")], [act.function], request=request))
        assert isinstance(parked, Parked)
        (reason,) = parked.reasons
        assert reason.code is ParkReason.RESUME_CANDIDATE_MISSING
        assert (reason.detail["why"], reason.detail["what"]) == ("budget_spent", "steps")
        assert reason.detail["have"] == 2
    assert len(process.session_events()) == 2, "nothing was written"
    request = PlanRequest(budgets=Budgets(steps_max=3))
    resumed = go(lambda: process.resume([ACT, says("never")], [act.function], request=request))
    assert isinstance(resumed, Continued)
    assert resumed.outcome.detail == "the turn has used 3 of the 3 steps that it may use"


def test_what_is_given_to_a_resume_replaces_what_was_recorded_as_a_whole() -> None:
    world, act = World(), Counted()
    killed_turn(world, act, Budgets(tokens_max=70, steps_max=2))
    process = Process(world)
    request = PlanRequest(budgets=Budgets(steps_max=9))
    resumed = go(lambda: process.resume([using(ACT, 60), says("done")], [act.function], request=request))
    assert isinstance(resumed, Continued)
    assert resumed.outcome.status is RunStatus.COMPLETED


def test_a_new_turn_begins_with_nothing_used() -> None:
    process, act = Process(), Counted()
    turn(process, [ACT] * 5, act, Budgets(steps_max=2))
    result = turn(process, [ACT, says("done")], act, Budgets(steps_max=2))
    assert result.outcome.status is RunStatus.COMPLETED
    free = turn(process, [ACT] * 3 + [says("done")], act, None)
    assert free.outcome.status is RunStatus.COMPLETED
    assert process.of(free.run_id, BudgetSet) == []


def test_a_claim_that_was_repaired_leaves_the_budget_in_force() -> None:
    world, act = World(), Counted()
    killed_turn(world, act, Budgets(steps_max=2))
    dying = Process(world, at_failpoint=killing(Failpoint.CLAIM_COMMITTED))
    with pytest.raises(Killed):
        go(lambda: dying.resume([says("never")], [act.function]))
    dying.die()
    process = Process(world)
    resumed = go(lambda: process.resume([using(ACT, 60)] * 5, [act.function]))
    assert isinstance(resumed, Continued)
    assert resumed.outcome.failure is FailureClass.STEP_LIMIT
    assert len(process.of(resumed.run_id, ModelStepCompleted)) == 1
