"""A person may give up a damaged run, and only that. SPEC section 11."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safepoint.domain.commands import AbandonRun
from safepoint.domain.events.event import Event
from safepoint.domain.events.session import EffectWatched, RunAbandoned, WatchStatus
from safepoint.domain.events.tool import RecoveryMode
from safepoint.domain.session.abandoning import abandon
from safepoint.domain.session.decisions import has_ended
from safepoint.domain.session.state import Session

from ..facts import Facts, accepted, refused, run_of, session_of

DAMAGE = "event 9 of run:r is damaged"


def give_up(r: Facts, last_good_sequence: int, run_id: str = "r") -> AbandonRun:
    fact = r.fact(RunAbandoned, run_id=run_id, by="Ada", note="disk", last_good_sequence=last_good_sequence)
    return AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact)


def given(r: Facts) -> tuple[Session, list[Event]]:
    """A run that can be read up to three dispatches, of which one was answered."""
    facts: list[Event] = [r.opened(), r.user(), *r.step("a", "b", "c")]
    facts += [r.dispatch("a"), r.dispatch("b"), r.dispatch("c", RecoveryMode.REPLAY_SAFE), r.outcome("b")]
    return session_of([r.session_opened(), r.admitted()]), facts


def test_a_damaged_run_is_let_go_and_what_it_had_dispatched_is_watched() -> None:
    r = Facts()
    session, facts = given(r)
    command = give_up(r, len(facts))
    fact, *watched = accepted(abandon(session, run_of(facts), run_of(facts), DAMAGE, command))
    assert fact == command.abandoned
    (effect,) = watched
    assert isinstance(effect, EffectWatched)
    assert (effect.operation_id, effect.status) == ("op-r-a", WatchStatus.INDETERMINATE)
    assert not has_ended(session, r.run_id, run_of(facts))
    assert not has_ended(session, r.run_id, None)
    assert has_ended(session_of([r.admitted(), command.abandoned]), r.run_id, run_of(facts))


@pytest.mark.parametrize(
    ("damage", "sequence", "run_id", "session"),
    [
        (None, 9, "r", lambda r: [r.admitted()]),
        (DAMAGE, 8, "r", lambda r: [r.admitted()]),
        (DAMAGE, 9, "q", lambda r: [r.admitted()]),
        (DAMAGE, 9, "r", lambda _: []),
        (DAMAGE, 9, "r", lambda r: [r.admitted(), Facts("r2").admitted()]),
        (DAMAGE, 9, "r", lambda r: [r.admitted(), give_up(r, 9).abandoned]),
    ],
    ids=["not damaged", "readable further", "another run", "an empty session", "not the head", "given up before"],
)
def test_nothing_else_can_be_given_up(
    damage: str | None, sequence: int, run_id: str, session: Callable[[Facts], list[Event]]
) -> None:
    r = Facts()
    _, facts = given(r)
    assert len(facts) == 10
    readable = run_of(facts[:9])
    decision = abandon(session_of(session(r)), readable, readable, damage, give_up(r, sequence, run_id))
    assert refused(decision) == "transition_shape_conflict"
