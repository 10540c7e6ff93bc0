"""Sealing: how a candidate becomes a stored event; `unsealing` reads it back. SPEC section 6.

The digest of event n covers the digest of event n-1, so it names the whole prefix up to n.
"""

from __future__ import annotations

import hashlib
from enum import Enum, StrEnum, auto
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel

from . import canonical
from .events.event import Event
from .reasons import LedgerIssue

EVENT_DOMAIN = "safepoint.event.v1"
FIRST_PREVIOUS_DIGEST = "0" * 64
EVENT_BYTES_MAX = 1024 * 1024
DIGEST_PREFIX = canonical.domain_prefix(EVENT_DOMAIN)
"""What every digest of an event covers before the event's bytes."""
_ATOMS = frozenset({str, int, bool, type(None)})
_REPLACED = "\N{REPLACEMENT CHARACTER}".encode()


class StoredRecord(NamedTuple):
    """One row as an event store keeps it: opaque bytes under a stream and a version."""

    stream: str
    version: int
    topic: str
    state: bytes


class SealedEvent(NamedTuple):
    """An event with its place in a stream and the digest of the prefix that ends with it."""

    stream: str
    sequence: int
    event: Event
    state: bytes
    digest: str
    previous_digest: str

    @property
    def record(self) -> StoredRecord:
        """The row that an event store keeps."""
        return StoredRecord(self.stream, self.sequence, self.event.topic, self.state)


class DamagedEvent(Exception):
    """Stored bytes that cannot be what was written. SPEC sections 6 and 7.

    Attributes:
        stream, sequence: where the damage is.
        kind: `chain_broken` or `sequence_gap`.
        detail: what did not fit, without content.
    """

    def __init__(self, stream: str, sequence: int, kind: LedgerIssue, detail: str) -> None:
        super().__init__(f"event {sequence} of {stream} is damaged ({kind}): {detail}")
        self.stream = stream
        self.sequence = sequence
        self.kind = kind
        self.detail = detail


class OversizedEvent(ValueError):
    """A candidate is larger than a stored event may be. SPEC section 5."""

    def __init__(self, topic: str, size: int) -> None:
        super().__init__(f"event of type {topic} has {size} bytes; the bound is {EVENT_BYTES_MAX}")
        self.topic = topic
        self.size = size


def digest_of(state: bytes) -> str:
    """Digest of an event's stored bytes, and so of the prefix that it ends: `canonical.digest` of this domain."""
    return hashlib.sha256(DIGEST_PREFIX + state).hexdigest()


def seal(event: Event, sequence: int, previous_digest: str) -> SealedEvent:
    """Give a candidate its place.

    Args:
        event: the candidate.
        sequence: its position in its stream, from 1.
        previous_digest: digest of the event before it, or `FIRST_PREVIOUS_DIGEST`.

    Raises:
        CanonicalError: a JSON value in it has no canonical form.
        OversizedEvent: it has more than `EVENT_BYTES_MAX` bytes.
    """
    state: bytes | None = None
    if _is_plain(event):
        fields = {**event.__dict__, "type": event.topic, "sequence": sequence, "previous_digest": previous_digest}
        state = canonical.encode_quickly(fields, _members)
    if state is None:  # the slow way, which says what is wrong
        seals = {"type": event.topic, "sequence": sequence, "previous_digest": previous_digest}
        state = canonical.encode({**event.model_dump(mode="json"), **seals})
        if _REPLACED in state:
            _refuse_surrogates(event.model_dump())
    if len(state) > EVENT_BYTES_MAX:
        raise OversizedEvent(event.topic, len(state))
    return SealedEvent(event.stream, sequence, event, state, digest_of(state), previous_digest)


class _Kind(Enum):
    """How a member of an event is looked at."""

    WORD = auto()
    PART = auto()
    TUPLE = auto()
    JSON = auto()


@lru_cache(maxsize=256)
def _kind_of(kind: type[object]) -> _Kind:
    """Looked up once a type: asking pydantic's classes about every value would cost more than all else here."""
    if kind in _ATOMS or issubclass(kind, StrEnum):
        return _Kind.WORD
    if issubclass(kind, BaseModel):
        return _Kind.PART
    return _Kind.TUPLE if issubclass(kind, tuple) else _Kind.JSON


def _is_plain(value: Any, levels_left: int = canonical.DEPTH_MAX) -> bool:
    """Whether every number in an event, or in a part of one, is spelled alike by the quick encoder."""
    kind = _kind_of(value.__class__)
    if kind is _Kind.WORD:
        return True
    if kind is _Kind.JSON:
        return canonical.is_plain(value, levels_left)
    for member in value.__dict__.values() if kind is _Kind.PART else value:
        if type(member) not in _ATOMS and not _is_plain(member, levels_left - 1):
            return False
    return True


def _members(part: Any) -> dict[str, object]:
    """The members of a part of an event, for the encoder."""
    if _kind_of(part.__class__) is _Kind.PART:
        members: dict[str, object] = part.__dict__
        return members
    raise TypeError(type(part).__name__)


def _refuse_surrogates(value: object) -> None:
    """Pydantic writes a lone surrogate in a key as another character, where the encoder would refuse it."""
    if isinstance(value, dict):
        for key, member in value.items():
            if not key.isascii():
                canonical.encode(key)
            _refuse_surrogates(member)
    elif isinstance(value, list | tuple):
        for member in value:
            _refuse_surrogates(member)
