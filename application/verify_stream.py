"""Verifies one stream: its chain, its facts, and what it says of others. Memory grows with one run at most."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.events.event import Event, RunEvent
from ..domain.events.outside import CheckpointAccepted
from ..domain.events.run import ContinuationStarted, PrefixRef, RunClaimed, RunEnded, RunOpened
from ..domain.events.session import RunAdmitted, SessionOpened
from ..domain.forgetting import FORGOTTEN_TOPIC, tombstone_of
from ..domain.identifiers import RunId, SessionId, run_stream
from ..domain.reasons import LedgerIssue, ParkReason
from ..domain.recovery.event_facts import event_facts
from ..domain.recovery.scanner import Scanner
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, SealedEvent, digest_of
from ..domain.unsealing import unseal
from ..ports.event_store import EventReader, Location
from .states import events_after


class StreamDamage(NamedTuple):
    """The first thing in a stream that cannot be what was written.

    Attributes:
        sequence: of the damaged event, None where no single one can be named.
        topic: its type, where that can be read.
        code: a ledger issue or another code of SPEC section 22.
    """

    stream: str
    sequence: int | None
    topic: str | None
    code: str
    detail: str


class OwnedRun(NamedTuple):
    """The newest owner that a run's events name, by its epoch."""

    run_id: RunId
    session_id: SessionId
    epoch: int


class StreamRead(NamedTuple):
    """How many events were read, the first damage among them, and whose they were; None where no event names one."""

    events: int
    damage: StreamDamage | None
    owned: OwnedRun | None = None


def verify_stream(reader: EventReader, stream: str) -> StreamRead:
    """Read a stream to its end or to its first damage.

    Raises:
        StoreDamaged, StoreUnavailable: a page could not be read.
    """
    first = reader.read(stream, limit=1)
    if first and first[0].topic == FORGOTTEN_TOPIC:
        return _verify_forgotten(reader, stream)
    scanner = Scanner()
    read = 0
    owned = None
    try:
        for sealed in events_after(reader, stream, 0, FIRST_PREVIOUS_DIGEST):
            read += 1
            event = sealed.event
            if isinstance(event, RunOpened | ContinuationStarted | RunEnded | RunClaimed):
                owned = OwnedRun(event.run_id, event.session_id, event.epoch)
            wrong = _wrong(reader, stream, sealed.sequence, event, scanner) or _bound_elsewhere(sealed)
            if wrong is not None:
                return StreamRead(read, StreamDamage(stream, sealed.sequence, event.topic, *wrong))
    except DamagedEvent as error:
        row = reader.read(stream, after=read, limit=1)
        topic = row[0].topic if row else None
        return StreamRead(read, StreamDamage(stream, error.sequence, topic, error.kind, error.detail))
    return StreamRead(read, _wrong_at_end(reader, stream, read), owned)


def _verify_forgotten(reader: EventReader, stream: str) -> StreamRead:
    """A stream whose content was forgotten is that whole, and in order; its digests are part of the store's."""
    read = 0
    while rows := reader.read(stream, after=read):
        for row in rows:
            read += 1
            if row.version != read:
                detail = f"version {read} was expected"
                return StreamRead(read, StreamDamage(stream, row.version, row.topic, LedgerIssue.SEQUENCE_GAP, detail))
            if row.topic != FORGOTTEN_TOPIC or tombstone_of(row.state) is None:
                detail = "its stream was forgotten, and this is no tombstone"
                return StreamRead(read, StreamDamage(stream, read, row.topic, LedgerIssue.CHAIN_BROKEN, detail))
    return StreamRead(read, _wrong_at_end(reader, stream, read))


def _wrong(reader: EventReader, stream: str, sequence: int, event: Event, scanner: Scanner) -> tuple[str, str] | None:
    """Why a well-sealed event cannot stand here."""
    if reader.locate(event.event_id) != Location(stream, sequence):
        return LedgerIssue.DUPLICATE_EVENT_ID, f"the index of event ids does not name this place for {event.event_id}"
    if isinstance(event, RunEvent):
        scanner.feed(event_facts(event, scanner.identity), sequence)
        if scanner.issues:
            return scanner.issues[0].code, "it contradicts the facts before it"
        if sequence == 1 and not isinstance(event, RunOpened | ContinuationStarted):
            return ParkReason.SOURCE_RUN_UNREADABLE, "the run does not begin with an opening event"
        if sequence == 1 and reader.standing(event.run_id).run_generation is None:
            return ParkReason.SOURCE_RUN_UNREADABLE, "no session admitted the run"
        if isinstance(event, ContinuationStarted):
            return _wrong_source(reader, event)
        if isinstance(event, RunClaimed):
            return _wrong_segments(reader, event)
    elif sequence == 1 and not isinstance(event, SessionOpened):
        return ParkReason.SOURCE_RUN_UNREADABLE, "the session does not begin with its opening event"
    elif isinstance(event, RunAdmitted) and event.claim_id is None and reader.last(run_stream(event.run_id)) is None:
        return LedgerIssue.SEQUENCE_GAP, f"run {event.run_id}, which is admitted here, has no event"
    return None


def _bound_elsewhere(sealed: SealedEvent) -> tuple[str, str] | None:
    """A checkpoint is accepted right behind the boundary that it is of."""
    event = sealed.event
    right_before = (sealed.sequence - 1, sealed.previous_digest)
    if isinstance(event, CheckpointAccepted) and (event.high_water, event.digest) != right_before:
        return ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH, "the checkpoint is bound to another boundary"
    return None


def _wrong_source(reader: EventReader, started: ContinuationStarted) -> tuple[str, str] | None:
    """The source must have, right behind the boundary, the claim that names this run."""
    source = started.source
    if not _has_prefix(reader, source):
        return ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH, f"run {source.run_id} is not what this one was made from"
    claim = reader.read(run_stream(source.run_id), after=source.high_water, limit=1)
    if not claim:
        return ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH, f"run {source.run_id} has no claim behind the boundary"
    try:
        claimed = unseal(claim[0], source.high_water + 1, source.digest).event
    except DamagedEvent as error:
        return ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH, str(error)
    if not isinstance(claimed, RunClaimed) or claimed.target.run_id != started.run_id:
        return ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH, f"run {source.run_id} was not claimed for this one"
    return None


def _wrong_segments(reader: EventReader, claimed: RunClaimed) -> tuple[str, str] | None:
    """Every ancestor must still have the prefix that the claim names."""
    for segment in claimed.segments:
        if not _has_prefix(reader, segment):
            return ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH, f"run {segment.run_id} is not what was claimed"
    return None


def _has_prefix(reader: EventReader, prefix: PrefixRef) -> bool:
    rows = reader.read(run_stream(prefix.run_id), after=prefix.high_water - 1, limit=1)
    return bool(rows) and rows[0].version == prefix.high_water and digest_of(rows[0].state) == prefix.digest


def _wrong_at_end(reader: EventReader, stream: str, read: int) -> StreamDamage | None:
    """A stream that is named and has no event; or whose newest event is not the last one that was read."""
    last = reader.last(stream)
    if last is None or last.version != read:
        return StreamDamage(stream, read + 1, None, LedgerIssue.SEQUENCE_GAP, "the stream does not end where it says")
    return None
