"""What a person says of an operation whose run takes no more facts goes to the session. SPEC section 10."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.commands import AttestInSession
from safepoint.domain.events.event import Event
from safepoint.domain.events.session import (
    ClearedBy,
    EffectCleared,
    EffectWatched,
    NoticePosted,
    OperationAttested,
    RunAbandoned,
    WatchStatus,
)
from safepoint.domain.events.tool import Effect, Statement
from safepoint.domain.reasons import WriteRefusal
from safepoint.domain.run.ending import end_run
from safepoint.domain.session.attesting import attest
from safepoint.domain.session.state import Session

from ..facts import Facts, accepted, prefix, refused, run_of, session_of

COMPLETED = Statement.COMPLETED


def said(
    r: Facts, statement: Statement = COMPLETED, notice: NoticePosted | None = None, **fields: Any
) -> AttestInSession:
    facts = {"operation_id": r.operation("a"), "run_id": r.run_id, "tool_name": "write", "by": "Ada", "note": "seen"}
    attested = r.fact(OperationAttested, statement=statement, **{**facts, **fields})
    return AttestInSession(*r.guard, r.run_id, attested, notice)


def claimed_run(effect: Effect = Effect.UNKNOWN) -> tuple[Facts, Session, list[Event]]:
    """A run whose tool raised, that was interrupted and continued."""
    r, target = Facts("r"), Facts("t")
    events: list[Event] = [r.opened(), r.user(), *r.step("a"), r.dispatch("a")]
    events += [r.outcome("a", effect=effect, is_error=True)]
    session: list[Event] = [r.session_opened(), r.admitted()]
    ending = accepted(end_run(session_of(session), run_of(events), r.end(), foreign=False))
    session += [event for event in ending if isinstance(event, EffectWatched)]
    events += [event for event in ending if not isinstance(event, EffectWatched)]
    claim = r.claim(target, [prefix(r, events)])
    return r, session_of([*session, claim.admitted]), [*events, claim.claimed]


def abandoned_run() -> tuple[Facts, Session, list[Event]]:
    """A run that can be read up to its dispatch, and was given up."""
    r = Facts("r")
    events: list[Event] = [r.opened(), r.user(), *r.step("a"), r.dispatch("a")]
    given_up = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=len(events))
    return r, session_of([r.session_opened(), r.admitted(), given_up]), events


@pytest.mark.parametrize("statement", [Statement.COMPLETED, Statement.NOT_EXECUTED])
def test_it_is_remembered_the_effect_is_not_in_doubt_any_more_and_the_next_run_is_told(statement: Statement) -> None:
    r, session, events = claimed_run()
    assert list(session.watched) == [r.operation("a")]
    command = said(r, statement, notice=r.notice())
    attested, became, notice = accepted(attest(session, run_of(events), command))
    assert (attested, notice) == (command.attested, command.notice)
    if statement is Statement.NOT_EXECUTED:
        assert isinstance(became, EffectCleared)
        assert (became.operation_id, became.by) == (r.operation("a"), ClearedBy.ATTESTED)
    else:  # the run that goes on was never told that it happened
        assert isinstance(became, EffectWatched)
        assert (became.operation_id, became.status) == (r.operation("a"), WatchStatus.ATTESTED)


def test_an_effect_that_is_not_watched_any_more_is_not_cleared_again() -> None:
    r, session, events = abandoned_run()
    command = said(r)
    assert accepted(attest(session, run_of(events), command)) == (command.attested,)


def test_that_it_is_over_clears_nothing() -> None:
    r, session, events = claimed_run()
    command = said(r, Statement.OVER)
    assert accepted(attest(session, run_of(events), command)) == (command.attested,)


@pytest.mark.parametrize("over", [False, True])
def test_it_is_said_once(over: bool) -> None:
    statement = Statement.OVER if over else COMPLETED
    r, session, events = abandoned_run()
    first = said(r, statement).attested
    after = session_of([r.session_opened(), r.admitted(), first])
    session = Session(
        head=session.head, abandoned=session.abandoned, attested=after.attested, declared_over=after.declared_over
    )
    assert refused(attest(session, run_of(events), said(r, statement))) is WriteRefusal.BUNDLE_INVALID
    other = COMPLETED if over else Statement.OVER
    assert accepted(attest(session, run_of(events), said(r, other)))


def test_what_was_said_in_the_run_before_it_was_claimed_stands() -> None:
    r, session, events = claimed_run()
    *before, claim = events
    attestation = r.attestation("a", len(before)).attested
    run = run_of([*before, attestation, claim])
    assert refused(attest(session, run, said(r))) is WriteRefusal.BUNDLE_INVALID


def test_an_operation_with_a_certain_outcome_needs_no_word() -> None:
    r, session, events = claimed_run(Effect.DONE)
    assert refused(attest(session, run_of(events), said(r))) is WriteRefusal.BUNDLE_INVALID


def test_a_run_that_takes_facts_is_attested_in_itself() -> None:
    r, session, events = claimed_run()
    unclaimed = run_of(events[:-1])
    assert refused(attest(session, unclaimed, said(r))) is WriteRefusal.TRANSITION_SHAPE_CONFLICT


@pytest.mark.parametrize("wrong", [{"operation_id": "other"}, {"tool_name": "read"}, {"run_id": "other"}])
def test_it_is_about_an_operation_of_this_run(wrong: dict[str, Any]) -> None:
    r, session, events = claimed_run()
    assert refused(attest(session, run_of(events), said(r, **wrong))) is WriteRefusal.TRANSITION_SHAPE_CONFLICT


def test_a_notice_that_cannot_be_said_is_refused() -> None:
    r, session, events = claimed_run()
    notice = r.notice(sentence_id="no_such_sentence")
    refusal = refused(attest(session, run_of(events), said(r, notice=notice)))
    assert refusal is WriteRefusal.TRANSITION_SHAPE_CONFLICT
