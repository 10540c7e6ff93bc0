"""The session aggregate: which run is its head, and the inbox for later runs. SPEC section 3.

Small, and loaded whole. It does not know whether its head has ended: that is the run's own fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True, slots=True)
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
    match event:
        case SessionOpened():
            return replace(session, opened=event)
        case RunAdmitted():
            return replace(session, head=event, previous=session.head, granted={})
        case NoticePosted():
            return replace(session, notices=(*session.notices, event))
        case NoticesTaken():
            taken = frozenset(event.notice_ids)
            return replace(session, notices=tuple(n for n in session.notices if n.notice_id not in taken))
        case GrantPosted():
            return replace(session, grants=(*session.grants, event))
        case GrantsTaken():
            used = frozenset(event.grant_ids)
            granted = {grant.grant_id: grant for grant in session.grants if grant.grant_id in used}
            left = tuple(grant for grant in session.grants if grant.grant_id not in used)
            return replace(session, grants=left, granted=granted)
        case EffectWatched():
            return replace(session, watched={**session.watched, event.operation_id: event})
        case EffectCleared():
            watched = {key: value for key, value in session.watched.items() if key != event.operation_id}
            return replace(session, watched=watched)
        case OperationAttested(statement=Statement.OVER):
            return replace(session, declared_over=session.declared_over | {event.operation_id})
        case OperationAttested():
            return replace(session, attested={**session.attested, event.operation_id: event})
        case RunAbandoned():
            return replace(session, abandoned=session.abandoned | {event.run_id})
        case _:
            # SessionEvent is open to subclassing for the checker; the catalogue holds exactly the cases above.
            raise AssertionError(f"no rule for {event.topic}")
