"""T2: an outcome settles exactly one dispatched, open operation. SPEC sections 7 and 8."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.tool import Effect
from safepoint.domain.operation.decisions import commit_outcome
from safepoint.domain.operation.state import operation_by_id
from safepoint.domain.reasons import VerdictReason
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.replay.segment import project_segment

from ..facts import Facts, accepted, prefix, refused, run_of, topics


def given(r: Facts) -> list[Event]:
    """`a` is dispatched, `b` is not, `c` has its outcome and left a job, `d` was refused."""
    history: list[Event] = [r.opened(), r.user(), *r.step("a", "b", "c", "d")]
    return [*history, r.dispatch("a"), r.dispatch("c"), r.outcome("c"), r.left_running("c"), r.refusal("d")]


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("is_error", [True, False])
def test_every_kind_of_outcome_settles(effect: Effect, is_error: bool) -> None:
    r = Facts()
    history = given(r)
    decision = commit_outcome(run_of(history), r.commit(r.outcome("a", effect=effect, is_error=is_error)))
    assert topics(decision) == ["tool.responded.v1"]
    verdicts = resolve(run_of([*history, *accepted(decision)]).tools, foreign=False).verdicts
    (verdict,) = [one for one in verdicts if one.operation_id == "op-r-a"]
    assert (verdict.status, verdict.effect) == (VerdictStatus.COMPLETED, effect)


def test_work_that_goes_on_is_recorded_with_the_outcome() -> None:
    r = Facts()
    history = given(r)
    decision = commit_outcome(run_of(history), r.commit(r.outcome("a"), r.left_running("a")))
    assert topics(decision) == ["tool.responded.v1", "background.started.v1"]
    assert set(run_of([*history, *accepted(decision)]).jobs) == {"job-a", "job-c"}


@pytest.mark.parametrize(
    ("call", "fields", "said"),
    [
        ("a", {"call_id": "c2"}, "c2"),
        ("a", {"operation_id": "op-x"}, "no dispatched operation"),
        ("a", {"operation_id": None}, "no dispatched operation"),
        ("a", {"operation_id": "op-r-c"}, "no dispatched operation"),
        ("a", {"call_id": "b"}, "no dispatched operation"),
        ("a", {"tool_name": "rm"}, "no dispatched operation"),
        ("b", {}, "no dispatched operation"),
        ("c", {}, "has its outcome"),
        ("d", {}, "no dispatched operation"),
    ],
)
def test_an_outcome_of_anything_else_is_refused_and_named(call: str, fields: dict[str, Any], said: str) -> None:
    r = Facts()
    history = given(r)
    decision = commit_outcome(run_of(history), r.commit(r.outcome(call, **fields)))
    assert refused(decision) == "transition_shape_conflict"
    assert said in decision.detail  # type: ignore[union-attr]


@pytest.mark.parametrize("fields", [{"operation_id": "op-x"}, {"operation_id": None}, {"handle_id": "job-c"}])
def test_a_job_is_of_the_operation_that_left_it_and_has_a_name_of_its_own(fields: dict[str, Any]) -> None:
    r = Facts()
    history = given(r)
    decision = commit_outcome(run_of(history), r.commit(r.outcome("a"), r.left_running("a", **fields)))
    assert refused(decision) == "transition_shape_conflict"


def test_a_stop_that_was_asked_for_takes_the_outcomes_of_live_tools() -> None:
    r = Facts()
    history = given(r)
    decision = commit_outcome(run_of([*history, r.cancelled()]), r.commit(r.outcome("a")))
    assert topics(decision) == ["tool.responded.v1"]


@pytest.mark.parametrize("fields", [{}, {"operation_id": "op-x"}])
def test_that_the_run_has_ended_or_was_claimed_is_said_first(fields: dict[str, Any]) -> None:
    r = Facts()
    ended: list[Event] = [*given(r), r.ended()]
    claimed = [*ended, r.claim(Facts("r2"), [prefix(r, ended)]).claimed]
    for history, code in ((ended, "run_sealed"), (claimed, "run_claimed")):
        assert refused(commit_outcome(run_of(history), r.commit(r.outcome("a", **fields)))) == code


def test_r3_006_an_outcome_of_a_call_that_does_not_exist_is_refused_when_it_is_written() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), r.user(), *r.step("c1"), r.dispatch("c1")]
    decision = commit_outcome(run_of(history), r.commit(r.outcome("c1", call_id="c2", operation_id=None)))
    assert refused(decision) == "transition_shape_conflict"
    assert "c2" in decision.detail  # type: ignore[union-attr]
    imported = resolve(run_of([*history, r.outcome("c1", call_id="c2", operation_id=None)]).tools, foreign=False)
    assert imported.has_corruption
    assert [(issue.code, issue.call_id) for issue in imported.issues] == [("orphan_response", "c2")]


def test_r3_005_an_outcome_that_is_an_error_is_an_outcome_and_the_history_goes_on() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), r.user(), *r.step("a"), r.dispatch("a")]
    raised = r.outcome("a", result="The tool failed (ValueError: boom).", is_error=True, effect=Effect.UNKNOWN)
    history += accepted(commit_outcome(run_of(history), r.commit(raised)))
    history += [r.ended()]
    operation = operation_by_id(run_of(history), "op-r-a")
    resolution = resolve(run_of(history).tools, foreign=False)
    (verdict,) = resolution.verdicts
    assert operation is not None
    assert (verdict.status, verdict.reason, verdict.is_error) == (
        VerdictStatus.COMPLETED,
        VerdictReason.MATCHING_RESPONSE,
        True,
    )
    segment = project_segment([event for event in history if hasattr(event, "run_id")], resolution, resumed=True)  # type: ignore[misc]
    assert [item.kind for item in segment.items] == ["user", "call", "result"]
