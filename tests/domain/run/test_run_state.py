"""What the facts of a run amount to, and that neither copies nor forks disturb one another. SPEC section 3."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from safepoint.domain.events.event import Event, RunEvent
from safepoint.domain.events.outside import BackgroundSettled, PermissionClosed
from safepoint.domain.events.tool import Effect
from safepoint.domain.operation.state import operations_of
from safepoint.domain.run.state import Run, evolve

from ..facts import Facts, prefix, run_of


def test_a_run_is_open_from_its_first_event_to_its_terminal_one() -> None:
    r = Facts()
    assert not Run().open
    assert run_of([r.opened(), r.user()]).open
    ended = run_of([r.opened(), r.ended()])
    assert not ended.open
    assert (ended.sequence, ended.ended is not None) == (2, True)


def test_who_stopped_a_run_first_stopped_it() -> None:
    r = Facts()
    run = run_of([r.opened(), r.cancelled("Ada"), r.cancelled("Bob")])
    assert run.cancel_requested is not None
    assert run.cancel_requested.by == "Ada"


def test_questions_are_open_until_they_are_decided_or_closed_in_the_order_in_which_they_were_asked() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), *r.step("b", "a")]
    history += [r.requested("b", "q3"), r.requested("a", "q2"), r.requested("a", "q1")]

    def open_(*more: Event) -> list[str]:
        return [permission.requested.request_id for permission in run_of([*history, *more]).open_permissions]

    assert open_() == ["q3", "q2", "q1"]
    closed = r.fact(PermissionClosed, request_id="q3", reason="run_stopped")
    assert open_(r.decided("q2", approved=False)) == ["q3", "q1"]
    assert open_(closed, r.decided("q2")) == ["q1"]
    permission = run_of([*history, closed]).permissions.get("q3")
    assert permission is not None
    assert (permission.closed, permission.decided, permission.open) == (True, None, False)
    assert open_(r.decided("q9")) == ["q3", "q2", "q1"]
    assert [one.requested.request_id for one in run_of(history).permissions_of("a")] == ["q2", "q1"]
    assert run_of(history).permissions_of("x") == ()


def test_jobs_go_on_until_they_are_settled() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), *r.step("a"), r.dispatch("a"), r.outcome("a"), r.left_running("a")]
    assert list(run_of(history).jobs) == ["job-a"]
    settled = r.fact(BackgroundSettled, handle_id="job-a", status="ended")
    assert list(run_of([*history, settled]).jobs) == []


def test_grants_that_a_dispatch_named_are_used() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), *r.step("a", "b"), r.dispatch("a", grant_id="g1"), r.dispatch("b")]
    assert run_of(history).grants_used == {"g1"}


def everything(r: Facts) -> list[Event]:
    """A history with every kind of fact that a state keeps."""
    history: list[Event] = [r.opened(), r.user(), *r.step("a", "b", "c")]
    history += [r.requested("b", "q1"), r.requested("b", "q2"), r.decided("q1")]
    history += [r.dispatch("a", grant_id="g1"), r.outcome("a"), r.left_running("a"), r.dispatch("b")]
    history += [r.fact(BackgroundSettled, handle_id="job-a", status="ended")]
    history += [r.fact(PermissionClosed, request_id="q2", reason="run_stopped"), r.cancelled("Ada"), r.ended()]
    return [*history, r.claim(Facts("r2"), [prefix(r, history)]).claimed]


def shown(run: Run) -> dict[str, Any]:
    """All that a state says."""
    said = {field.name: getattr(run, field.name) for field in fields(run)}
    for name in ("permissions", "asked", "calls", "dispatches", "redeliveries"):
        said[name] = {key: said[name].get(key) for key in said[name]}
    tools = said.pop("tools")
    said["tools"] = [(one.call_id, one.operation_id, one.response_at, one.recovery) for one in tools.operations()]
    said["scanned"] = (tools.length, tools.high_water, tools.identity, tools.ended_at, tools.claimed_at, tools.issues)
    return said


def test_no_fold_reaches_an_earlier_state() -> None:
    history = [event for event in everything(Facts()) if isinstance(event, RunEvent)]
    states = [Run()]
    for event in history:
        states.append(evolve(states[-1], event))
    for length, state in enumerate(states):
        assert shown(state) == shown(run_of(history[:length]))


def test_what_a_copy_or_a_fork_takes_in_is_what_the_run_would_and_does_not_reach_it() -> None:
    history = [event for event in everything(Facts()) if isinstance(event, RunEvent)]
    for length in range(len(history) + 1):
        for take_another in (Run.copy, Run.fork):
            run = run_of(history[:length])
            other = take_another(run)
            for position, event in enumerate(history[length:], length + 1):
                other.take(event)
                assert shown(other) == shown(run_of(history[:position]))
            assert shown(run) == shown(run_of(history[:length]))


def test_a_run_that_goes_on_keeps_its_records_from_those_who_took_a_copy() -> None:
    history = [event for event in everything(Facts()) if isinstance(event, RunEvent)]
    run, looking = Run(), [(Run(), shown(Run()))]
    for event in history:
        run.take(event)
        looking.append((run.copy(), shown(run)))
    assert [shown(copy) for copy, _ in looking] == [said for _, said in looking]


def test_a_call_is_kept_until_it_is_certain_what_came_of_it() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), *r.step("a", "b", "c", "d"), r.refusal("a")]
    dispatches = [r.dispatch("b"), r.dispatch("c")]
    history += [*dispatches, r.outcome("b")]
    history.append(r.outcome("c", effect=Effect.UNKNOWN))
    run = run_of(history)
    assert sorted(run.calls) == ["c", "d"]
    operations = {str(operation.call_id): operation for operation in operations_of(run)}
    assert {call_id: operation.called is None for call_id, operation in operations.items()} == {
        "a": True,
        "b": True,
        "c": False,
        "d": False,
    }
    assert [operations[one].dispatch for one in "bc"] == dispatches


def test_deliveries_stand_in_their_order_even_where_t1_is_missing_or_there_twice() -> None:
    r = Facts()
    history = [r.opened(), *r.step("a")]
    first, again = r.dispatch("a"), r.redelivery("a").started
    for order in ([first, again], [again, first], [first, first, again]):
        assert run_of([*history, *order]).deliveries_of(first.operation_id) == tuple(order)
