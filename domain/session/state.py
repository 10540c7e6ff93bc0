"""The session aggregate: which run is its head, and the inbox for later runs. SPEC section 3.

Small, and loaded whole. It does not know whether its head has ended: that is the run's own fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..events.event import SessionEvent
from ..events.session import (
    EffectCleared,
    EffectWatched,
    GrantPosted,
    GrantsTaken,
    NoticePosted,
    NoticesTaken,
    OperationAttested,
    RunAbandoned,
    RunAdmitted,
    SessionOpened,
)
from ..events.tool import Statement
from ..identifiers import GrantId, OperationId, RunId

Changed: TypeAlias = Mapping[str, object]
"""The attributes of a session that a fact changes."""


@dataclass(frozen=True)
class Session:
    """What the facts of a session amount to.

    Attributes:
        previous: the run that was the head before: of a continuation, its source.
        notices, grants: the inbox, which the next first commit takes over.
        granted: what the head run took over; it lapses with that run.
        watched: effects that a later call must not repeat unasked.
        attested: what a person said of operations of claimed and abandoned runs; `declared_over` is said beside that.
    """

    opened: SessionOpened | None = None
    head: RunAdmitted | None = None
    previous: RunAdmitted | None = None
    notices: tuple[NoticePosted, ...] = ()
    grants: tuple[GrantPosted, ...] = ()
    granted: Mapping[GrantId, GrantPosted] = field(default_factory=dict)
    watched: Mapping[OperationId, EffectWatched] = field(default_factory=dict)
    abandoned: frozenset[RunId] = frozenset()
    attested: Mapping[OperationId, OperationAttested] = field(default_factory=dict)
    declared_over: frozenset[OperationId] = frozenset()


def evolve(session: Session, event: SessionEvent) -> Session:
    """Fold one fact in; never refuses. SPEC section 3."""
    evolved = object.__new__(Session)
    # As `replace` in a third of the time, and by the exact type, which pydantic's classes are slow to compare.
    vars(evolved).update(vars(session), **_CHANGED[type(event)](session, event))
    return evolved


def _opened(_session: Session, event: SessionOpened) -> Changed:
    return {"opened": event}


def _admitted(session: Session, event: RunAdmitted) -> Changed:
    return {"head": event, "previous": session.head, "granted": {}}


def _notice_posted(session: Session, event: NoticePosted) -> Changed:
    return {"notices": (*session.notices, event)}


def _notices_taken(session: Session, event: NoticesTaken) -> Changed:
    taken = frozenset(event.notice_ids)
    return {"notices": tuple(notice for notice in session.notices if notice.notice_id not in taken)}


def _grant_posted(session: Session, event: GrantPosted) -> Changed:
    return {"grants": (*session.grants, event)}


def _grants_taken(session: Session, event: GrantsTaken) -> Changed:
    used = frozenset(event.grant_ids)
    granted = {grant.grant_id: grant for grant in session.grants if grant.grant_id in used}
    return {"grants": tuple(grant for grant in session.grants if grant.grant_id not in used), "granted": granted}


def _effect_watched(session: Session, event: EffectWatched) -> Changed:
    return {"watched": {**session.watched, event.operation_id: event}}


def _effect_cleared(session: Session, event: EffectCleared) -> Changed:
    return {"watched": {key: value for key, value in session.watched.items() if key != event.operation_id}}


def _attested(session: Session, event: OperationAttested) -> Changed:
    if event.statement is Statement.OVER:
        return {"declared_over": session.declared_over | {event.operation_id}}
    return {"attested": {**session.attested, event.operation_id: event}}


def _abandoned(session: Session, event: RunAbandoned) -> Changed:
    return {"abandoned": session.abandoned | {event.run_id}}


_CHANGED: Mapping[type[SessionEvent], Callable[[Session, Any], Changed]] = {
    SessionOpened: _opened,
    RunAdmitted: _admitted,
    NoticePosted: _notice_posted,
    NoticesTaken: _notices_taken,
    GrantPosted: _grant_posted,
    GrantsTaken: _grants_taken,
    EffectWatched: _effect_watched,
    EffectCleared: _effect_cleared,
    OperationAttested: _attested,
    RunAbandoned: _abandoned,
}
"""The catalogue holds exactly these kinds of events of a session."""
