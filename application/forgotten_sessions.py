"""Sessions whose content was forgotten: nothing of them can be shown or used any more. SPEC section 16."""

from __future__ import annotations

from ..domain.errors import SafepointError
from ..domain.events.event import Timestamp
from ..domain.forgetting import FORGOTTEN_TOPIC, tombstone_of
from ..domain.identifiers import SessionId, session_stream
from ..ports.event_store import EventReader


class SessionForgotten(SafepointError):
    """The session's content was forgotten: nothing of it can be shown or used any more.

    Attributes:
        by, at: who had it forgotten, and when.
    """

    def __init__(self, session_id: SessionId, by: str, at: Timestamp) -> None:
        super().__init__(f"session {session_id} was forgotten by {by} at {at}")
        self.session_id = session_id
        self.by = by
        self.at = at


def require_not_forgotten(reader: EventReader, session_id: SessionId) -> None:
    """Make sure that a session was not forgotten; one that never was is not this function's business.

    Raises:
        SessionForgotten: it was.
    """
    rows = reader.read(session_stream(session_id), limit=1)
    left = tombstone_of(rows[0].state) if rows and rows[0].topic == FORGOTTEN_TOPIC else None
    if left is not None:
        raise SessionForgotten(session_id, left.by, left.at)
