"""What the facts of a run amount to, and that folding leaves earlier states as they were. SPEC section 3."""

from __future__ import annotations

from safepoint.domain.events.event import Event
from safepoint.domain.events.outside import BackgroundSettled, PermissionClosed
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


def test_no_fold_reaches_an_earlier_state() -> None:
    r = Facts()
    history: list[Event] = [r.opened(), r.user(), *r.step("a", "b"), r.requested("a"), r.decided("ask-a")]
    history += [r.dispatch("a"), r.outcome("a"), r.left_running("a"), r.cancelled(), r.ended()]
    history += [r.claim(Facts("r2"), [prefix(r, history)]).claimed]
    states = [Run()]
    for event in history:
        states.append(evolve(states[-1], event))  # type: ignore[arg-type]
    for length, state in enumerate(states):
        fresh = run_of(history[:length])
        assert seen(state) == seen(fresh)


def seen(run: Run) -> tuple[object, ...]:
    return (
        run.sequence,
        run.opening,
        run.cancel_requested,
        run.ended,
        run.claimed,
        run.steps,
        run.open_requests,
        dict(run.jobs),
        run.grants_used,
        [(one, run.permissions.get(one)) for one in sorted(run.permissions)],
        [(one, run.calls.get(one)) for one in sorted(run.calls)],
        [(one, run.deliveries.get(one)) for one in sorted(run.deliveries)],
        [(record.call_id, record.dispatch, record.response) for record in run.tools.operations()],
        run.tools.issues,
    )
