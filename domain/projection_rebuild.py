"""The projections' rows from stored bytes alone: what a rebuild and a comparison read. SPEC section 7."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .identifiers import run_of, session_of
from .projections import TOPICS_WITH_ROWS, Row, rows_of
from .sealing import DamagedEvent, SealedEvent, StoredRecord
from .unsealing import event_of


class NoRows(ValueError):
    """No rows can be made of a stored event; whoever verifies its chain says why."""


def rows_of_record(record: StoredRecord, make: Callable[[SealedEvent], Sequence[Row]] = rows_of) -> Sequence[Row]:
    """The rows that a stored event makes. Its chain is not verified here.

    Args:
        record: the event.
        make: makes the rows, of an event whose digests are not known.

    Raises:
        NoRows: its bytes are not an event of its topic.
    """
    if record.topic not in TOPICS_WITH_ROWS:
        return ()
    try:
        event = event_of(record)
    except DamagedEvent as damage:
        raise NoRows(str(damage)) from damage
    return make(SealedEvent(record.stream, record.version, event, record.state, "", ""))


def bare_row_of(stream: str) -> Row | None:
    """The row that shows that a stream is there, although its events cannot be read."""
    if (session_id := session_of(stream)) is not None:
        return Row("sessions", {"session_id": session_id})
    if (run_id := run_of(stream)) is not None:
        return Row("runs", {"run_id": run_id})
    return None
