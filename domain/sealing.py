"""Sealing: how a candidate becomes a stored event, and how stored bytes are read back. SPEC section 6.

The digest of event n covers the digest of event n-1, so it names the whole prefix up to n.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from . import canonical
from .events.catalogue import EVENTS, MalformedEvent, UnknownEventType, event_from
from .events.event import Event, Value
from .reasons import LedgerIssue

EVENT_DOMAIN = "safepoint.event.v1"
FIRST_PREVIOUS_DIGEST = "0" * 64
EVENT_BYTES_MAX = 1024 * 1024
_DOMAIN_PREFIX = canonical.domain_prefix(EVENT_DOMAIN)
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
    return hashlib.sha256(_DOMAIN_PREFIX + state).hexdigest()


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
    seals: dict[str, object] = {"type": event.topic, "sequence": sequence, "previous_digest": previous_digest}
    state = canonical.encode_quickly({**event.__dict__, **seals}, _members) if _is_plain(event) else None
    if state is None:  # the slow way, which says what is wrong
        state = canonical.encode({**event.model_dump(mode="json"), **seals})
        if _REPLACED in state:
            _refuse_surrogates(event.model_dump())
    if len(state) > EVENT_BYTES_MAX:
        raise OversizedEvent(event.topic, len(state))
    return SealedEvent(event.stream, sequence, event, state, digest_of(state), previous_digest)


def _is_plain(value: object, levels_left: int = canonical.DEPTH_MAX) -> bool:
    """Whether every number in an event, or in a part of one, is spelled alike by the quick encoder."""
    if isinstance(value, StrEnum):
        return True
    if not isinstance(value, BaseModel | tuple):
        return canonical.is_plain(value, levels_left)
    for member in value if isinstance(value, tuple) else value.__dict__.values():
        if type(member) not in _ATOMS and not _is_plain(member, levels_left - 1):
            return False
    return True


def _members(part: object) -> dict[str, object]:
    """The members of a part of an event, for the encoder."""
    if isinstance(part, Value):
        return part.__dict__
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


def unseal(record: StoredRecord, sequence: int, previous_digest: str) -> SealedEvent:
    """Read a stored row back and check that it is what was sealed at this place.

    Args:
        record: the row.
        sequence: the position that is expected next in the stream, from 1.
        previous_digest: the digest of the event before it.

    Raises:
        DamagedEvent: the row is not the event that belongs here.
    """
    stream, version, topic, state = record
    if version != sequence:
        raise _damaged(record, LedgerIssue.SEQUENCE_GAP, f"version {sequence} was expected")
    event = _unsealed_quickly(topic, state, sequence, previous_digest) or _unsealed(record, sequence, previous_digest)
    if event.stream != stream:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "belongs to another stream")
    return SealedEvent(stream, sequence, event, state, digest_of(state), previous_digest)


def _unsealed_quickly(topic: str, state: bytes, sequence: int, previous_digest: str) -> Event | None:
    """The event of which sealing makes exactly these bytes at this place; None where that is not seen at once.

    Nothing else has to be known of the bytes: whatever they are, they are what `seal` makes of this event.
    """
    cls = EVENTS.get(topic)
    if cls is None:
        return None
    try:
        event = cls.__pydantic_validator__.validate_json(state, extra="ignore")  # the seals, and what is compared below
    except ValidationError:
        return None
    fields = event.__dict__
    for name in _loose_fields(cls):
        value = fields[name]
        if type(value) not in _ATOMS and not _is_plain_inside(value):
            return None
    seals = {"type": topic, "sequence": sequence, "previous_digest": previous_digest}
    return event if canonical.encode_quickly({**fields, **seals}, _members) == state else None


@cache
def _loose_fields(cls: type[BaseModel]) -> tuple[str, ...]:
    """The fields that are not text, words, whole numbers or flags once they are validated."""
    return tuple(name for name, field in cls.model_fields.items() if not _is_atomic(field.annotation))


def _is_atomic(annotation: Any) -> bool:
    """Whether every value of a type is one of `_ATOMS`, or a word of an enumeration."""
    origin = get_origin(annotation)
    if origin is Literal:
        return _ATOMS.issuperset(map(type, get_args(annotation)))
    if origin is Annotated:
        return _is_atomic(get_args(annotation)[0])
    if origin is not None:
        return origin in (Union, UnionType) and all(map(_is_atomic, get_args(annotation)))
    kind = getattr(annotation, "__supertype__", annotation)
    return kind in _ATOMS or (isinstance(kind, type) and issubclass(kind, StrEnum))


def _is_plain_inside(value: object) -> bool:
    """As `_is_plain`, of a validated part of an event: only what its type leaves open is looked at."""
    if not isinstance(value, Value):
        return _is_plain(value)
    fields = value.__dict__
    for name in _loose_fields(type(value)):
        if type(fields[name]) not in _ATOMS and not _is_plain_inside(fields[name]):
            return False
    return True


def _unsealed(record: StoredRecord, sequence: int, previous_digest: str) -> Event:
    """As `_unsealed_quickly`, of any bytes, and says what is wrong."""
    topic, state = record.topic, record.state
    try:
        fields = canonical.decode_canonical(state)
    except ValueError as error:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, f"bytes are not canonical JSON: {error}") from error
    if type(fields) is not dict:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "not a JSON object")
    if (
        fields.pop("type", None) != topic
        or fields.pop("sequence", None) != sequence
        or fields.pop("previous_digest", None) != previous_digest
    ):
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "type, sequence or previous digest do not match")
    try:
        return event_from(fields, topic)
    except (UnknownEventType, MalformedEvent) as error:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, str(error)) from error


def _damaged(record: StoredRecord, kind: LedgerIssue, detail: str) -> DamagedEvent:
    return DamagedEvent(record.stream, record.version, kind, detail)
