"""The projections' rows from stored bytes alone: what a rebuild and a comparison read. SPEC section 7."""

from __future__ import annotations

from . import canonical
from .events import outside, run, session, tool
from .events.catalogue import MalformedEvent, UnknownEventType, event_from
from .events.model import UserMessage
from .projections import Row, rows_of
from .sealing import SealedEvent, StoredRecord

TOPICS_WITH_ROWS: frozenset[str] = frozenset(
    cls.topic
    for cls in (
        session.SessionOpened,
        session.RunAdmitted,
        session.RunAbandoned,
        session.EffectWatched,
        session.EffectCleared,
        run.RunOpened,
        run.ContinuationStarted,
        run.CancelRequested,
        run.RunEnded,
        run.RunClaimed,
        UserMessage,
        tool.ToolDispatched,
        tool.ToolResponded,
        tool.ToolRedeliveryStarted,
        tool.ToolReconciled,
        tool.ToolRecoveryDecided,
        tool.ToolAttested,
        outside.PermissionRequested,
        outside.PermissionDecided,
        outside.PermissionClosed,
    )
)
"""Events of other topics make no row and need not be decoded."""

_SEAL = ("type", "sequence", "previous_digest")


class NoRows(ValueError):
    """No rows can be made of a stored event; whoever verifies its chain says why."""


def rows_of_record(record: StoredRecord) -> tuple[Row, ...]:
    """The rows that a stored event makes. Its chain is not verified here.

    Raises:
        NoRows: its bytes are not an event of its topic.
    """
    if record.topic not in TOPICS_WITH_ROWS:
        return ()
    try:
        fields = canonical.decode_canonical(record.state)
        if not isinstance(fields, dict):
            raise NoRows("not a JSON object")
        event = event_from({name: value for name, value in fields.items() if name not in _SEAL}, record.topic)
    except (canonical.CanonicalError, UnknownEventType, MalformedEvent) as error:
        raise NoRows(str(error)) from error
    return rows_of(SealedEvent(record.stream, record.version, event, record.state, "", ""))


def bare_row_of(stream: str) -> Row | None:
    """The row that shows that a stream is there, although its events cannot be read."""
    kind, _, name = stream.partition(":")
    if kind == "session":
        return Row("sessions", {"session_id": name})
    if kind == "run":
        return Row("runs", {"run_id": name})
    return None
