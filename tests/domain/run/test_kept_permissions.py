"""A person's decision on a call that its run could not carry out is kept for the next run. SPEC section 13, F6."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.event import Event
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import GrantPosted, NoticePosted
from safepoint.domain.events.tool import RecoveryMode
from safepoint.domain.run.ending import end_run
from safepoint.domain.run.kept_permissions import grant_of
from safepoint.domain.sentences import SentenceId, render

from ..facts import Facts, accepted, contract, run_of, session_of


def ended(*more: Event, r: Facts | None = None, foreign: bool = False, **how: Any) -> list[Event]:
    """What the end of a run writes in which call `a` was asked about."""
    r = r or Facts("r1")
    given: list[Event] = [r.opened(), r.user(), *r.step("a"), r.requested("a"), *more]
    return list(accepted(end_run(session_of([]), run_of(given), r.end(**how), foreign=foreign)))


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_on_a_call_that_was_not_dispatched_becomes_a_grant_bound_to_what_was_asked(approved: bool) -> None:
    r = Facts("r1")
    r.step("a")
    asked = r.requested("a")
    written = ended(r.decided("ask-a", approved=approved), r=r)
    (grant,) = [event for event in written if isinstance(event, GrantPosted)]
    assert (grant.grant_id, grant.request_id, grant.approved) == (grant_of(asked.request_id), "ask-a", approved)
    assert (grant.tool_name, grant.call_id, grant.decided_by) == (asked.tool_name, "a", "Ada")
    assert (grant.args_hash, grant.contract_digest) == (asked.args_hash, asked.contract_digest)
    notices = [event for event in written if isinstance(event, NoticePosted)]
    assert [one.sentence_id for one in notices] == ([SentenceId.PERMISSION_GRANTED] if approved else [])
    assert all(render(one.sentence_id, one.parameters) for one in notices)


def test_a_decision_on_a_repeat_stays_one_on_that_repeat() -> None:
    r = Facts("r1")
    r.step("a")
    given: list[Event] = [r.opened(), r.user(), *r.step("b"), r.requested("b", repeats="op-z"), r.decided("ask-b")]
    (grant,) = [
        event
        for event in accepted(end_run(session_of([]), run_of(given), r.end(), foreign=False))
        if isinstance(event, GrantPosted)
    ]
    assert grant.repeats == "op-z"


def test_an_open_question_is_no_decision() -> None:
    assert not [event for event in ended() if isinstance(event, GrantPosted)]


def test_an_approval_that_was_used_is_not_kept() -> None:
    r = Facts("r1")
    r.step("a")
    dispatched = r.dispatch("a", RecoveryMode.OUTCOME_UNKNOWN, contract=contract())
    assert not [event for event in ended(r.decided("ask-a"), dispatched, r=r) if isinstance(event, GrantPosted)]


def test_a_call_that_was_answered_needs_no_permission_any_more() -> None:
    r = Facts("r1")
    r.step("a")
    written = ended(r.decided("ask-a", approved=False), r.refusal("a"), r=r)
    assert not [event for event in written if isinstance(event, GrantPosted)]


@pytest.mark.parametrize("how", [{"stopped_by": "Ada", "status": RunStatus.CANCELLED}, {"foreign": True}])
def test_nothing_is_kept_where_a_person_stopped_the_run_or_the_call_may_have_been_dispatched(
    how: dict[str, Any],
) -> None:
    r = Facts("r1")
    r.step("a")
    assert not [event for event in ended(r.decided("ask-a"), r=r, **how) if isinstance(event, GrantPosted)]
