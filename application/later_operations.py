"""What a session dispatched after an operation: what that recorded before T1 says how things stood then. ADR 0052."""

from __future__ import annotations

from ..domain.events.session import RunAdmitted
from ..domain.events.tool import ToolDispatched
from ..domain.identifiers import OperationId, RunId, SessionId, run_stream, session_stream
from ..domain.sealing import FIRST_PREVIOUS_DIGEST
from ..ports.event_store import EventReader
from .states import events_after


def dispatched_after(
    reader: EventReader, session_id: SessionId, run_id: RunId, operation_id: OperationId
) -> tuple[ToolDispatched, ...]:
    """The dispatches of a session after that of an operation, in order: of its own run, and of all later ones.

    Raises:
        DamagedEvent: one of these runs cannot be read, so it is not known what it dispatched.
        StoreUnavailable: it could not be read.
    """
    admitted = [
        sealed.event.run_id
        for sealed in events_after(reader, session_stream(session_id), 0, FIRST_PREVIOUS_DIGEST)
        if isinstance(sealed.event, RunAdmitted)
    ]
    own = admitted.index(run_id) if run_id in admitted else 0
    found = [
        sealed.event
        for one in admitted[own:]
        for sealed in events_after(reader, run_stream(one), 0, FIRST_PREVIOUS_DIGEST)
        if isinstance(sealed.event, ToolDispatched)
    ]
    places = [place for place, dispatch in enumerate(found) if dispatch.operation_id == operation_id]
    return tuple(found[places[0] + 1 :]) if places else tuple(found)
