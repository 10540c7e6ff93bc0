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
    seals = {"type": event.topic, "sequence": sequence, "previous_digest": previous_digest}
    fields = _unfolded(event)
    if fields is not None:
        fields.update(seals)
        state = canonical.encode_quickly(fields, _members)
    if state is None:  # the slow way, which says what is wrong
        state = canonical.encode({**event.model_dump(mode="json"), **seals})
        if _REPLACED in state:
            _refuse_surrogates(event.model_dump())
    if len(state) > EVENT_BYTES_MAX:
        raise OversizedEvent(event.topic, len(state))
    # As calling the class would, in half the time.
    return tuple.__new__(SealedEvent, (event.stream, sequence, event, state, digest_of(state), previous_digest))


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


def _unfolded(part: BaseModel, levels_left: int = canonical.DEPTH_MAX) -> dict[str, Any] | None:
    """The members of an event, or of a part of one, with words as text and parts unfolded, which costs the encoder
    more; None where a number is not spelled alike by the quick encoder.
    """
    fields = part.__dict__
    members = fields.copy()
    for name, kind in _not_atoms(tuple(fields), tuple(map(type, fields.values()))):
        member = fields[name]
        if kind is _Kind.WORD:
            members[name] = member._value_
        elif kind is _Kind.PART:
            members[name] = inner = _known_part(member) or _unfolded_part(member, levels_left - 1)
            if inner is None:
                return None
        elif not _is_plain(member, levels_left - 1):
            return None
    return members


def _known_part(part: BaseModel) -> object | None:
    """The bytes of a part that was written before: the contract of a tool is, with each of its calls."""
    known = _PARTS.get(id(part))
    # A frozen part never changes, but what it holds may: one that is not empty any more is looked at anew.
    return None if known is None or known.part is not part or any(known.empty) else known.text


def _unfolded_part(part: BaseModel, levels_left: int) -> dict[str, Any] | None:
    unfolded = _unfolded(part, levels_left)
    if unfolded is None:
        return None
    containers = [member for member in unfolded.values() if type(member) not in _ATOMS]
    if not any(containers) and all(type(one) is dict for one in containers):
        text = canonical.encode_quickly(unfolded, _members)
        if text is not None:
            if len(_PARTS) >= _PARTS_MAX:
                _PARTS.clear()
            _PARTS[id(part)] = _KnownPart(part, canonical.Fragment(text), tuple(containers))
    return unfolded


class _KnownPart(NamedTuple):
    """A part that is kept, so that nothing else gets its id, with its bytes, and its containers, which were empty."""

    part: BaseModel
    text: object
    empty: tuple[dict[str, Any], ...]


_PARTS: dict[int, _KnownPart] = {}
_PARTS_MAX = 256


@lru_cache(maxsize=1024)
def _not_atoms(names: tuple[str, ...], kinds: tuple[Any, ...]) -> tuple[tuple[str, _Kind], ...]:
    """The members that must be looked at, of all that have these names and types: most events of a kind are alike."""
    return tuple((name, _kind_of(kind)) for name, kind in zip(names, kinds, strict=True) if kind not in _ATOMS)


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
