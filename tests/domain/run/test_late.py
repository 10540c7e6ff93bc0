"""What may still be written into a run after its terminal event, and before its claim. SPEC sections 7 and 13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.domain.commands import AppendLate
from safepoint.domain.events.event import Event
from safepoint.domain.events.outside import BackgroundSettled, PermissionClosed, WorkspaceRenewed
from safepoint.domain.run.decisions import append_late

from ..facts import Facts, prefix, refused, run_of, topics

Make = Callable[[Facts], AppendLate]


def given(r: Facts) -> list[Event]:
    """An interrupted run with an open question, a decided one, and a job that goes on."""
    history: list[Event] = [r.opened(), r.user(), *r.step("a", "b", "c")]
    history += [r.requested("a"), r.requested("b"), r.decided("ask-b")]
    history += [r.dispatch("c"), r.outcome("c"), r.left_running("c"), r.ended()]
    return history


def answered(r: Facts, fact: dict[str, Any] | None = None, grant: dict[str, Any] | None = None) -> AppendLate:
    """The answer to the open question, with the grant that carries it to the next run."""
    decided = r.decided("ask-a", **{"grant_id": "g1", **(fact or {})})
    return r.late(decided, grant=r.grant(r.requested("a"), **(grant or {})))


def renewed(r: Facts) -> WorkspaceRenewed:
    return r.fact(WorkspaceRenewed, from_identity="a", to_identity="b")


def settled(r: Facts, handle: str = "job-c") -> BackgroundSettled:
    return r.fact(BackgroundSettled, handle_id=handle, status="completed", exit_code=0)


def test_a_late_answer_is_carried_to_the_next_run_by_its_grant() -> None:
    r = Facts()
    history = given(r)
    assert topics(append_late(run_of(history), answered(r))) == ["permission.decided.v1", "session.grant_posted.v1"]
    no = answered(r, {"approved": False}, {"approved": False})
    assert topics(append_late(run_of(history), no)) == ["permission.decided.v1", "session.grant_posted.v1"]


def test_a_job_that_settled_and_a_workspace_fact_may_come_with_a_notice() -> None:
    r = Facts()
    history = given(r)
    for fact in (settled(r), renewed(r)):
        assert topics(append_late(run_of(history), r.late(fact))) == [fact.topic]
        with_notice = r.late(fact, notice=r.notice())
        assert topics(append_late(run_of(history), with_notice)) == [fact.topic, "session.notice_posted.v1"]


def test_a_question_that_the_stop_closed_is_closed_for_good() -> None:
    r = Facts()
    *history, ended = given(r)
    closed = r.fact(PermissionClosed, request_id="ask-a", reason="run_stopped")
    assert refused(append_late(run_of([*history, closed, ended]), answered(r))) == "transition_shape_conflict"


REFUSED: dict[str, Make] = {
    "no grant": lambda r: r.late(r.decided("ask-a", grant_id="g1")),
    "a question that was answered": lambda r: r.late(
        r.decided("ask-b", grant_id="g1"), grant=r.grant(r.requested("b"))
    ),
    "an unknown question": lambda r: answered(r, {"request_id": "x"}, {"request_id": "x"}),
    "a grant with another name": lambda r: answered(r, {}, {"grant_id": "g2"}),
    "a decision that names no grant": lambda r: answered(r, {"grant_id": None}),
    "a grant for another question": lambda r: answered(r, {}, {"request_id": "ask-b"}),
    "a yes for a no": lambda r: answered(r, {"approved": False}),
    "somebody else's decision": lambda r: answered(r, {}, {"decided_by": "Bob"}),
    "another tool": lambda r: answered(r, {}, {"tool_name": "rm"}),
    "another call": lambda r: answered(r, {}, {"call_id": "b"}),
    "other arguments": lambda r: answered(r, {}, {"args_hash": "f" * 64}),
    "another contract": lambda r: answered(r, {}, {"contract_digest": "f" * 64}),
    "a repeat that nobody was asked about": lambda r: answered(r, {}, {"repeats": "op"}),
    "a grant beside another fact": lambda r: r.late(renewed(r), grant=r.grant(r.requested("a"))),
    "the end of a job that never ran": lambda r: r.late(settled(r, "job-x")),
    "a notice that cannot be told": lambda r: r.late(renewed(r), notice=r.notice(sentence_id="x")),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(make: Make) -> None:
    r = Facts()
    history = given(r)
    assert refused(append_late(run_of(history), make(r))) == "transition_shape_conflict"


@pytest.mark.parametrize("make", [answered, lambda r: r.late(renewed(r)), *REFUSED.values()])
def test_a_claim_excludes_all_of_it_and_is_said_first(make: Make) -> None:
    r = Facts()
    history = given(r)
    claimed = [*history, r.claim(Facts("r2"), [prefix(r, history)]).claimed]
    assert refused(append_late(run_of(claimed), make(r))) == "run_claimed"


def test_an_open_run_takes_them_as_ordinary_facts_only() -> None:
    r = Facts()
    history = given(r)[:-1]
    assert refused(append_late(run_of(history), answered(r))) == "transition_shape_conflict"
