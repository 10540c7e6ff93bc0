"""Exports a session: every event as it is stored, with the heads and claims that say that nothing is missing.

SPEC section 19. What is read is verified before it is handed on, in one consistent view of the store, page by page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..domain import canonical
from ..domain.errors import SafepointError
from ..domain.events.event import Json
from ..domain.events.run import RunClaimed
from ..domain.events.session import RunAdmitted
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import ClaimId, RunId, SessionId, run_of, run_stream, session_stream
from ..domain.redaction import redact
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, digest_of
from ..ports.event_store import EventReader, EventStore
from .forgotten_sessions import require_not_forgotten
from .states import events_after, standing_of


class SessionMissing(SafepointError):
    """There is no such session in the store."""

    def __init__(self, session_id: SessionId) -> None:
        super().__init__(f"there is no session {session_id} in this store")
        self.session_id = session_id


class StreamHead(NamedTuple):
    """How many events a stream has, and the digest that names them all."""

    stream: str
    events: int
    digest: str


class ExportedClaim(NamedTuple):
    """A claim: who continues which boundary."""

    claim_id: ClaimId
    source_run_id: RunId
    target_run_id: RunId
    boundary_digest: str


@dataclass(frozen=True, slots=True)
class ExportBegin:
    """What is going to be exported; the session's own stream first, then its runs in the order of admission.

    Attributes:
        foreign: the store cannot vouch for all of these runs: absence of a fact proves nothing (SPEC section 6).
    """

    session_id: SessionId
    heads: tuple[StreamHead, ...]
    redacted: bool
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """One event.

    Attributes:
        state: its stored bytes, or what redaction left of them; then `sealed.digest` is still that of the original.
        args_hash: of a call whose arguments may have been redacted, so that its dispatch can still be matched.
    """

    sealed: SealedEvent
    state: bytes
    args_hash: str | None = None


@dataclass(frozen=True, slots=True)
class ExportEnd:
    """Everything was exported."""

    events: int
    claims: tuple[ExportedClaim, ...]


ExportPart: TypeAlias = ExportBegin | ExportedEvent | ExportEnd


class ExportSession:
    """Exports sessions of one store; reads only."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def __call__(self, session_id: SessionId, *, redacted: bool = False) -> Iterator[ExportPart]:
        """Export one session, part by part.

        Args:
            session_id: the session.
            redacted: replace what looks like a secret. Such an export can be judged, and is never imported.

        Raises:
            SessionMissing: there is no such session.
            SessionForgotten: its content was forgotten.
            DamagedEvent: the chain does not verify there; what was exported before it is no whole export.
            StoreUnavailable, StoreDamaged: it could not be read.
        """
        with self._store.snapshot() as reader:
            require_not_forgotten(reader, session_id)
            streams = list(_streams(reader, session_id))
            heads = tuple(head for stream in streams if (head := _head(reader, stream)) is not None)
            if not heads:
                raise SessionMissing(session_id)
            runs = (run_of(head.stream) for head in heads)
            foreign = [run_id for run_id in runs if run_id is not None and standing_of(reader, run_id).foreign]
            yield ExportBegin(session_id, heads, redacted, bool(foreign))
            events, claims = 0, list[ExportedClaim]()
            for head in heads:
                for sealed in events_after(reader, head.stream, 0, FIRST_PREVIOUS_DIGEST):
                    events += 1
                    if isinstance(sealed.event, RunClaimed):
                        claims.append(claim_of(sealed.event))
                    yield _redacted(sealed) if redacted else ExportedEvent(sealed, sealed.state)
            yield ExportEnd(events, tuple(claims))


def _streams(reader: EventReader, session_id: SessionId) -> Iterator[str]:
    own = session_stream(session_id)
    yield own
    for sealed in events_after(reader, own, 0, FIRST_PREVIOUS_DIGEST):
        if isinstance(sealed.event, RunAdmitted):
            yield run_stream(sealed.event.run_id)


def _head(reader: EventReader, stream: str) -> StreamHead | None:
    """None for the target of a claim that was never started."""
    last = reader.last(stream)
    return None if last is None else StreamHead(stream, last.version, digest_of(last.state))


def claim_of(event: RunClaimed) -> ExportedClaim:
    """The claim that an event is."""
    return ExportedClaim(event.claim_id, event.run_id, event.target.run_id, event.boundary_digest)


def _redacted(sealed: SealedEvent) -> ExportedEvent:
    event = sealed.event
    decoded = canonical.decode_canonical(sealed.state)
    fields: dict[str, Json] = decoded if isinstance(decoded, dict) else {}
    hashed = None
    if isinstance(event, ToolCalled) and event.args_text is None:
        hashed = canonical.args_hash(event.tool_name, event.args)
    shown = {key: _shown(key, value) for key, value in fields.items()}
    return ExportedEvent(sealed, canonical.encode(shown), hashed)


def _shown(key: str, value: Json) -> Json:
    """A field of an event; in what a person or tool brought, no name keeps a value from being looked at."""
    if key in _STRUCTURE:
        return redact(value, keep=_is_identity)
    return value if _is_identity(key) else redact(value)


_STRUCTURE = frozenset({"contract", "profile", "segments", "source", "target", "context"})


def _is_identity(key: str) -> bool:
    """What links events to one another, and holds nothing of a person's."""
    return key in {"type", "occurred_at", "tool_name", "digest"} or key.endswith(("_id", "_ids", "_digest", "_hash"))
