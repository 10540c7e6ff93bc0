"""What may be written into a session, decided on its state. SPEC sections 3, 5 and 7."""

from __future__ import annotations

from ..decision import Refusal, misfit
from ..events.derived import Derived, derived_id
from ..events.event import SessionEvent
from ..events.model import HostMessage
from ..events.run import ContinuationStarted, RunOpened
from ..events.session import GrantsTaken, NoticePosted, NoticesTaken, RunAdmitted, SessionOpened
from ..identifiers import RunId
from ..reasons import WriteRefusal
from ..run.state import Run
from ..sentences import UnknownSentence, render
from .state import Session


def admit_turn(
    session: Session, head: Run | None, opened: SessionOpened, admitted: RunAdmitted
) -> tuple[SessionEvent, ...] | Refusal:
    """Admit a new turn or child run: only while the session is not open.

    Args:
        session: the session's state.
        head: the state of its head run, None when it has no run yet.
        opened: written first when the session is new.
        admitted: the admission.
    """
    if session.head is not None and not has_ended(session, session.head.run_id, head):
        return Refusal(WriteRefusal.SESSION_BUSY, f"run {session.head.run_id} of this session has not ended")
    if session.opened is None:
        return (opened, admitted)
    return (admitted,)


def has_ended(session: Session, run_id: RunId, run: Run | None) -> bool:
    """True when a run is no longer open: it has its terminal event, or a person abandoned it."""
    return run_id in session.abandoned or (run is not None and run.ended is not None)


def take_inbox(
    session: Session, first: RunOpened | ContinuationStarted
) -> tuple[tuple[SessionEvent, ...], tuple[HostMessage, ...]]:
    """Hand all pending notices and grants to a run's first commit.

    Args:
        session: the session's state.
        first: the run's first event; ids and time of the derived facts come from it.

    Returns:
        The session's facts, and the host messages that tell the model.
    """
    taken: list[SessionEvent] = []
    if session.notices:
        taken.append(
            NoticesTaken(
                session_id=first.session_id,
                occurred_at=first.occurred_at,
                event_id=derived_id(first, Derived.NOTICES_TAKEN),
                run_id=first.run_id,
                notice_ids=tuple(notice.notice_id for notice in session.notices),
            )
        )
    if session.grants:
        taken.append(
            GrantsTaken(
                session_id=first.session_id,
                occurred_at=first.occurred_at,
                event_id=derived_id(first, Derived.GRANTS_TAKEN),
                run_id=first.run_id,
                grant_ids=tuple(grant.grant_id for grant in session.grants),
            )
        )
    messages = (_told(notice, first, position) for position, notice in enumerate(session.notices))
    return tuple(taken), tuple(messages)


def _told(notice: NoticePosted, first: RunOpened | ContinuationStarted, position: int) -> HostMessage:
    return HostMessage(
        session_id=first.session_id,
        occurred_at=first.occurred_at,
        event_id=derived_id(first, Derived.NOTICE_TOLD, position),
        run_id=first.run_id,
        turn_id=first.turn_id,
        invocation_id=first.invocation_id,
        sentence_id=notice.sentence_id,
        parameters=notice.parameters,
        text=render(notice.sentence_id, notice.parameters),
    )


def unsayable(notice: NoticePosted | None) -> Refusal | None:
    """Refuse a notice that could not be told: it would stand in the way of every later run."""
    if notice is None:
        return None
    try:
        render(notice.sentence_id, notice.parameters)
    except UnknownSentence as error:
        return misfit(str(error))
    return None
