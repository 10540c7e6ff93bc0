"""Exact retry: the same event ids with the same candidates converge on the first result. SPEC section 7.

Asked only when a command cannot be written as it stands, which every retry of a written command is: so first tries pay nothing.
"""

from __future__ import annotations

from ..domain.commands import AnyCommand
from ..domain.decision import Refusal
from ..domain.reasons import WriteRefusal
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, digest_of, unseal
from ..ports.event_store import EventReader
from .deciding import carried


def earlier_result(command: AnyCommand, reader: EventReader) -> tuple[SealedEvent, ...] | Refusal | None:
    """What an earlier writing of this very command gave; a refusal when its ids stand for something else; None when it is new.

    Raises:
        DamagedEvent: what stands there cannot be read.
    """
    candidates = carried(command)
    found: list[SealedEvent] = []
    for candidate in candidates:
        where = reader.locate(candidate.event_id)
        if where is None:
            continue
        if where.stream != candidate.stream:
            return Refusal(WriteRefusal.DUPLICATE_EVENT_ID, f"event id {candidate.event_id} is used in another place")
        sealed = _at(reader, where.stream, where.version)
        if sealed.event != candidate:
            return Refusal(WriteRefusal.RETRY_CONFLICT, f"event id {candidate.event_id} was written with other content")
        found.append(sealed)
    if not found:
        return None
    if len(found) < len(candidates):
        return Refusal(WriteRefusal.RETRY_CONFLICT, "only a part of these events was written before")
    return tuple(found)


def _at(reader: EventReader, stream: str, version: int) -> SealedEvent:
    before = max(version - 2, 0)
    rows = reader.read(stream, after=before, limit=2)
    previous = FIRST_PREVIOUS_DIGEST if version == 1 else digest_of(rows[0].state)
    return unseal(rows[-1] if version > 1 else rows[0], version, previous)
