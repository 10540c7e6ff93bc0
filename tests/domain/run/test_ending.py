"""How a run ends: undispatched calls closed, uncertain effects watched, in one commit. SPEC section 7, F4, F9."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.outside import BackgroundSettled, PermissionClosed
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import EffectWatched, WatchStatus
from safepoint.domain.events.tool import Effect, RecoveryMode, ToolResponded
from safepoint.domain.operation.repeat_guard import arguments_only_hash
from safepoint.domain.run.ending import end_run

from ..facts import Facts, accepted, contract, prefix, refused, run_of, session_of, topics
from ..test_assembling import are_one

ENDS = [RunStatus.FAILED, RunStatus.CANCELLED]


def given(r: Facts, *calls: str, **step: Any) -> list[Event]:
    return [r.opened(), r.user(), *r.step(*calls, **step)]


def end(r: Facts, history: list[Event], status: RunStatus = RunStatus.FAILED, **more: Any) -> tuple[Event, ...]:
    foreign = more.pop("foreign", False)
    return accepted(end_run(session_of(history), run_of(history), r.end(status, **more), foreign=foreign))


@pytest.mark.parametrize("status", ENDS)
def test_calls_that_were_not_dispatched_are_closed_in_call_order_before_the_terminal_event(status: RunStatus) -> None:
    r = Facts()
    history = [*given(r, "d", "a", "c", "b"), r.dispatch("a"), r.outcome("a")]
    *closings, ended = end(r, history, status)
    assert ended.topic == "run.ended.v1"
    assert [
        (one.call_id, one.effect, one.is_error, one.operation_id, one.code)
        for one in closings
        if isinstance(one, ToolResponded)
    ] == [(call, Effect.NONE, True, None, "not_executed_interrupted") for call in ("d", "c", "b")]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"stopped_by": "Ada"}, "Not executed: Ada stopped the run before dispatch."),
        ({"recovered": True}, "Not executed: the run was interrupted before dispatch."),
        ({}, "Not executed: the run ended before dispatch."),
    ],
    ids=["stopped", "repaired", "failed"],
)
def test_a_closing_tells_the_model_the_truth(fields: dict[str, Any], said: str) -> None:
    r = Facts()
    closing, _ = end(r, given(r, "a"), **fields)
    assert isinstance(closing, ToolResponded)
    assert closing.result == said


def test_the_ids_of_closings_are_derived_from_the_terminal_event() -> None:
    r = Facts()
    history = given(r, "a", "b")
    command = r.end()
    once = accepted(end_run(session_of([]), run_of(history), command, foreign=False))
    again = accepted(end_run(session_of([]), run_of(history), command, foreign=False))
    assert once == again
    assert len({event.event_id for event in once}) == 3


@pytest.mark.parametrize(
    ("protocol", "foreign"), [(None, False), ("t1_after_preflight_v1", True)], ids=["no protocol", "a foreign run"]
)
def test_where_absence_proves_nothing_no_call_is_said_not_to_have_been_executed(
    protocol: str | None, foreign: bool
) -> None:
    r = Facts()
    history: list[Event] = [r.opened(protocol=protocol), r.user(), *r.step("a")]
    assert topics(end(r, history, foreign=foreign)) == ["run.ended.v1"]


# ---- completed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("open_", ["called", "dispatched", "a job"])
def test_completed_is_refused_while_an_operation_or_an_attached_job_is_open(open_: str) -> None:
    r = Facts()
    history = given(r, "a")
    if open_ != "called":
        history += [r.dispatch("a")]
    if open_ == "a job":
        history += [r.outcome("a"), r.left_running("a")]
    decision = end_run(session_of([]), run_of(history), r.end(RunStatus.COMPLETED), foreign=False)
    assert refused(decision) == "operation_open"
    for status in ENDS:
        assert end(r, history, status)[-1].topic in {"run.ended.v1", "session.effect_watched.v1"}


@pytest.mark.parametrize("done", ["answered", "refused", "an unknown effect", "a detached job", "a settled job"])
def test_completed_is_accepted_when_nothing_is_open(done: str) -> None:
    r = Facts()
    history = given(r, "a")
    match done:
        case "refused":
            history += [r.refusal("a")]
        case "an unknown effect":
            history += [r.dispatch("a"), r.outcome("a", is_error=True, effect=Effect.UNKNOWN)]
        case _:
            history += [r.dispatch("a"), r.outcome("a")]
    if done == "a detached job":
        history += [r.left_running("a", detached=True)]
    if done == "a settled job":
        history += [r.left_running("a"), r.fact(BackgroundSettled, handle_id="job-a", status="ended")]
    assert end(r, history, RunStatus.COMPLETED)[0].topic == "run.ended.v1"


# ---- watched effects -------------------------------------------------------------------------------------------------


def test_every_uncertain_effect_is_watched_with_what_tells_a_repeat() -> None:
    r = Facts()
    history = given(r, "sure", "asked", "shown", tool="pay", args={"to": "x"})
    key = contract(RecoveryMode.IDEMPOTENT, key_valid_seconds=60)
    history += [r.dispatch("sure"), r.outcome("sure"), r.dispatch("asked", contract=key, idempotency_key="k")]
    history += [r.dispatch("shown"), r.outcome("shown", is_error=True, effect=Effect.UNKNOWN)]
    ended, *watched = end(r, history)
    assert ended.topic == "run.ended.v1"
    indeterminate, unknown = (effect for effect in watched if isinstance(effect, EffectWatched))
    assert (indeterminate.operation_id, indeterminate.status) == ("op-r-asked", WatchStatus.INDETERMINATE)
    assert (unknown.operation_id, unknown.status) == ("op-r-shown", WatchStatus.UNKNOWN)
    assert (indeterminate.idempotency_key, indeterminate.key_valid_until) == ("k", "2026-11-29T12:01:00.000000Z")
    assert (unknown.idempotency_key, unknown.key_valid_until) == (None, None)
    for effect in (indeterminate, unknown):
        assert (effect.run_id, effect.tool_name, effect.has_arguments) == ("r", "pay", True)
        assert effect.args_hash == r.dispatch("sure").args_hash
        assert effect.arguments_only_hash == arguments_only_hash({"to": "x"})
    assert (indeterminate.mode, unknown.mode) == (RecoveryMode.IDEMPOTENT, RecoveryMode.OUTCOME_UNKNOWN)


@pytest.mark.parametrize("status", ENDS)
def test_a_read_is_not_watched_and_nothing_is_watched_twice(status: RunStatus) -> None:
    r = Facts()
    history = [*given(r, "read", "write"), r.dispatch("read", RecoveryMode.REPLAY_SAFE), r.dispatch("write")]
    first = end(r, history, status)
    assert [event.topic for event in first] == ["run.ended.v1", "session.effect_watched.v1"]
    known = [event for event in first if isinstance(event, EffectWatched)]
    assert [event.topic for event in end(r, [*history, *known], status)] == ["run.ended.v1"]


def test_a_call_without_arguments_says_so() -> None:
    r = Facts()
    history = [*given(r, "a", args={}), r.dispatch("a")]
    _, watched = end(r, history)
    assert isinstance(watched, EffectWatched)
    assert not watched.has_arguments


# ---- a person's stop -------------------------------------------------------------------------------------------------


def test_a_persons_stop_closes_open_permissions_for_good_with_response_and_terminal_event() -> None:
    r = Facts()
    history = given(r, "a", "b", "c")
    history += [r.requested("c"), r.requested("a"), r.requested("b"), r.decided("ask-b", approved=False)]
    decision = end(r, [*history, r.cancelled()], RunStatus.CANCELLED, stopped_by="Ada")
    assert [event.topic for event in decision] == [
        *["tool.responded.v1"] * 3,
        *["permission.closed.v1"] * 2,
        "run.ended.v1",
    ]
    closed = [event.request_id for event in decision if isinstance(event, PermissionClosed)]
    assert closed == ["ask-c", "ask-a"]
    assert run_of([*history, *decision]).open_permissions == ()


def test_an_interruption_leaves_questions_open() -> None:
    r = Facts()
    history = [*given(r, "a"), r.requested("a")]
    decision = end(r, history)
    assert [event.topic for event in decision] == ["tool.responded.v1", "run.ended.v1"]
    assert [one.requested.request_id for one in run_of([*history, *decision]).open_permissions] == ["ask-a"]


# ---- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(RunStatus))
def test_a_run_ends_once_and_that_is_said_before_anything_else(status: RunStatus) -> None:
    r = Facts()
    history = [*given(r, "a"), r.dispatch("a")]
    ended = [*history, r.ended()]
    claimed = [*ended, r.claim(Facts("r2"), [prefix(r, ended)]).claimed]
    for given_, code in ((ended, "run_sealed"), (claimed, "run_claimed"), ([], "transition_shape_conflict")):
        assert refused(end_run(session_of([]), run_of(given_), r.end(status), foreign=False)) == code


@pytest.mark.parametrize("mode", RecoveryMode)
def test_what_is_added_to_an_end_is_what_validating_would_make_of_it(mode: RecoveryMode) -> None:
    r = Facts()
    more = {"contract": contract(mode, key_valid_seconds=60 if mode is RecoveryMode.IDEMPOTENT else None)}
    key = "key" if mode is RecoveryMode.IDEMPOTENT else None
    history = [*given(r, "a", "b", "c"), r.dispatch("a", idempotency_key=key, **more), r.dispatch("b", **more)]
    history.append(r.outcome("b", effect=Effect.UNKNOWN))
    added = end(r, history)
    assert len(added) == (2 if mode is RecoveryMode.REPLAY_SAFE else 4)
    for fact in added:
        are_one(fact, type(fact).model_validate(dict(fact)))
