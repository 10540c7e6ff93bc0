"""Whether what a list shows of a session can be read; bounded, so that none slows the list of the others. F12, F13."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.errors import StoreDamaged
from ..domain.events.session import RunKind
from ..domain.identifiers import run_stream, session_stream
from ..domain.reasons import ParkReason, WriteRefusal
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, digest_of, unseal
from ..ports.event_store import EventReader
from ..ports.views import SessionRow

CHECKED_EVENTS_MAX = 500
"""How many of the newest events of a stream a list verifies; whatever shows, plans or verifies it reads all of them."""
PAGE = 50
"""Results may be large: so many are in memory at once."""


class Damage(NamedTuple):
    """What is wrong with a record, by code, and where."""

    code: str
    detail: str


def damage_of(reader: EventReader, row: SessionRow) -> Damage | None:
    """What is wrong with the newest facts of a session and of its head run; None when nothing was found.

    Raises:
        StoreUnavailable: it could not be looked at, which is no damage.
    """
    try:
        _verify_tail(reader, session_stream(row.session_id))
        if row.head_run_id is None or _verify_tail(reader, run_stream(row.head_run_id)):
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
    before = max(0, last.version - CHECKED_EVENTS_MAX - 1)
    digest = FIRST_PREVIOUS_DIGEST if before == 0 else None
    while rows := reader.read(stream, after=before, limit=PAGE):
        for row in rows:
            before += 1
            digest = digest_of(row.state) if digest is None else unseal(row, before, digest).digest
    return last.version
