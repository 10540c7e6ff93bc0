"""Exact retry: the same event ids with the same candidates converge on the first result. SPEC section 7.

Asked only when a command cannot be written as it stands, which every retry of a written command is: so first tries pay
nothing. The facts that the decision derived are found again by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise

from ..domain import commands as c
from ..domain.decision import Refusal
from ..domain.events.derived import Derived, derived_id
from ..domain.events.event import Event
from ..domain.reasons import LedgerIssue, WriteRefusal
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, SealedEvent, digest_of, seal
from ..domain.unsealing import unseal
from ..ports.event_store import EventReader, Location
from .deciding import carried


def earlier_result(command: c.AnyCommand, reader: EventReader) -> tuple[SealedEvent, ...] | Refusal | None:
    """What an earlier writing of this very command gave.

    Returns:
        The events of the first result, stream by stream; a refusal when its ids stand for something else; None when
        it is new.

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
        sealed = _at(reader, *where)
        if not _same(candidate, sealed):
            return Refusal(WriteRefusal.RETRY_CONFLICT, f"event id {candidate.event_id} was written with other content")
        found.append(sealed)
    if not found:
        return None
    if len(found) < len(candidates) or not _consecutive(found):
        return Refusal(WriteRefusal.RETRY_CONFLICT, "these events were not written together before")
    added = [_at(reader, *where) for where in _derived(command, reader)]
    return _in_order(command, [*found, *added])


def _at(reader: EventReader, stream: str, version: int) -> SealedEvent:
    rows = reader.read(stream, after=max(version - 2, 0), limit=2)
    if not rows or rows[-1].version < version:
        raise DamagedEvent(stream, version, LedgerIssue.SEQUENCE_GAP, "its id is known, and it is not there")
    row, previous = (rows[0], FIRST_PREVIOUS_DIGEST) if version == 1 else (rows[-1], digest_of(rows[0].state))
    return unseal(row, version, previous)


def _same(candidate: Event, sealed: SealedEvent) -> bool:
    """Compared as bytes: equal values of Python, such as 1 and True, are not always equal JSON."""
    try:
        return seal(candidate, sealed.sequence, sealed.previous_digest).state == sealed.state
    except ValueError:
        return False


def _consecutive(found: list[SealedEvent]) -> bool:
    return all(
        later.sequence == earlier.sequence + 1 for earlier, later in pairwise(found) if later.stream == earlier.stream
    )


def _derived(command: c.AnyCommand, reader: EventReader) -> Iterator[Location]:
    """Where the facts stand that the decision added."""
    if isinstance(command, c.OpenRun) and (opened := reader.locate(command.session_opened.event_id)) is not None:
        yield opened
    if (seed := _seed_of(command)) is None:
        return
    for why in Derived:
        for position in count():
            where = reader.locate(derived_id(seed, why, position))
            if where is None:
                break
            yield where


def _seed_of(command: c.AnyCommand) -> Event | None:
    """The candidate from which a decision derives more."""
    match command:
        case c.OpenRun():
            return command.opened
        case c.PrepareTool():
            return command.dispatch
        case c.EndRun():
            return command.ended
        case c.CommitRecovery():
            return command.decided
        case c.CommitAttestation() | c.AttestInSession():
            return command.attested
        case c.StartContinuation():
            return command.started
        case c.AbandonRun():
            return command.abandoned
        case _:
            return None


def _in_order(command: c.AnyCommand, events: list[SealedEvent]) -> tuple[SealedEvent, ...]:
    """As the decision ordered them: what begins a run tells its session first."""
    session_first = isinstance(command, c.OpenRun | c.StartContinuation)
    return tuple(sorted(events, key=lambda one: (one.stream.startswith("session:") is not session_first, one.sequence)))
