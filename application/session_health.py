"""Whether what a list shows of a session can be read; bounded, so that none slows the list of the others. F12, F13."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.errors import StoreDamaged
from ..domain.events.session import RunKind
from ..domain.identifiers import run_stream, session_stream
from ..domain.reasons import ParkReason, WriteRefusal
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, StoredRecord, digest_of
from ..domain.unsealing import unseal
from ..ports.event_store import EventReader
from ..ports.views import SessionRow

CHECKED_EVENTS_MAX = 500
"""How many of the newest events of a stream a list verifies; whatever shows, plans or verifies it reads all of them."""
CHECKED_BYTES_MAX = 256 * 1024
"""Bound on their bytes, too: a few large results must not slow the list of other sessions."""
BLOCK_MAX = 64
"""How many older ones are read at once, while they have been small."""


NO_EVENT = "only a row of a view names this session, and no event does; the views can be made again"
NO_ROW = "its events are there, and its row in the view of the sessions is not; the views can be made again"


class Damage(NamedTuple):
    """What is wrong with a record, by code, and where; `of_view` where it is a view alone, which can be made again."""

    code: str
    detail: str
    of_view: bool = False


def damage_of(reader: EventReader, row: SessionRow) -> Damage | None:
    """What is wrong with the newest facts of a session and of its head run; None when nothing was found.

    Raises:
        StoreUnavailable: it could not be looked at, which is no damage.
    """
    try:
        if not _verify_tail(reader, session_stream(row.session_id)):
            return Damage(WriteRefusal.STORE_DAMAGED, NO_EVENT, of_view=True)
        if row.head_run_id is None or row.head_abandoned_by is not None:
            return None  # what a person gave up is known to be damaged
        if _verify_tail(reader, run_stream(row.head_run_id)):
            return None
    except DamagedEvent as error:
        return Damage(ParkReason.RUNTIME_LEDGER_UNREADABLE, str(error))
    except StoreDamaged as error:
        return Damage(WriteRefusal.STORE_DAMAGED, error.detail)
    if row.head_kind == RunKind.CONTINUATION:
        return None  # a claim that was never started: its target is empty
    return Damage(ParkReason.SOURCE_RUN_UNREADABLE, f"run {row.head_run_id} was admitted and has no event")


def _verify_tail(reader: EventReader, stream: str) -> int:
    """Verify the newest events of a stream against each other; returns how many it has in all."""
    last = reader.last(stream)
    if last is None:
        return 0
    first, rows = _tail(reader, last)
    digest = FIRST_PREVIOUS_DIGEST if first == 1 else None
    for sequence, row in enumerate(rows, first):
        digest = digest_of(row.state) if digest is None else unseal(row, sequence, digest).digest
    return last.version


def _tail(reader: EventReader, last: StoredRecord) -> tuple[int, list[StoredRecord]]:
    """The newest rows of a stream, and the sequence of the first of them: as many as are checked, and one before."""
    first, rows, size, block = last.version, [last], len(last.state), 1
    while first > 1 and len(rows) <= CHECKED_EVENTS_MAX and size < CHECKED_BYTES_MAX:
        after = max(0, first - 1 - min(block, CHECKED_EVENTS_MAX + 1 - len(rows)))
        older = reader.read(last.stream, after=after, limit=first - 1 - after)
        rows = [*older, *rows]
        size += sum(len(row.state) for row in older)
        first, block = after + 1, min(2 * block, BLOCK_MAX)
    return first, rows
