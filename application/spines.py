"""The fields that every new fact has: a fresh id, its identity, and the present time. SPEC section 5."""

from __future__ import annotations

from typing import TypedDict

from ..domain.events.event import Timestamp
from ..domain.identifiers import EventId, ExecutionIdentity, InvocationId, RunId, SessionId, TurnId
from ..ports.clock import Clock
from ..ports.ids import Ids


class SessionSpine(TypedDict):
    """What a session's fact has."""

    event_id: EventId
    session_id: SessionId
    occurred_at: Timestamp


class RunSpine(SessionSpine):
    """What a run's fact has."""

    run_id: RunId
    turn_id: TurnId
    invocation_id: InvocationId


class Spines:
    """Makes spines from the clock and id ports."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids

    def now(self) -> Timestamp:
        """The present time."""
        return self._clock.now()

    def session(self, session_id: SessionId) -> SessionSpine:
        """For a new fact of a session."""
        return SessionSpine(event_id=self._ids.fresh(EventId), session_id=session_id, occurred_at=self._clock.now())

    def run(self, identity: ExecutionIdentity) -> RunSpine:
        """For a new fact of a run."""
        session_id, run_id, turn_id, invocation_id = identity
        return {
            "event_id": self._ids.fresh(EventId),
            "session_id": session_id,
            "occurred_at": self._clock.now(),
            "run_id": run_id,
            "turn_id": turn_id,
            "invocation_id": invocation_id,
        }

    def identity(self, session_id: SessionId) -> ExecutionIdentity:
        """Fresh run, turn and invocation ids in a session."""
        return ExecutionIdentity(
            session_id, self._ids.fresh(RunId), self._ids.fresh(TurnId), self._ids.fresh(InvocationId)
        )
