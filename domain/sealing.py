"""Sealing: how a candidate becomes a stored event; `unsealing` reads it back. SPEC section 6.

The digest of event n covers the digest of event n-1, so it names the whole prefix up to n.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from . import canonical
from .events.event import Event
from .reasons import LedgerIssue

EVENT_DOMAIN = "safepoint.event.v1"
FIRST_PREVIOUS_DIGEST = "0" * 64
EVENT_BYTES_MAX = 1024 * 1024
DIGEST_PREFIX = canonical.domain_prefix(EVENT_DOMAIN)
"""What every digest of an event covers before the event's bytes."""
_PREFIX_HASHED = hashlib.sha256(DIGEST_PREFIX)
ATOMS = frozenset({str, int, bool, type(None)})
"""Types whose values are spelled as they are: everything else is looked at."""
_WRITTEN = ATOMS | {canonical.Fragment}
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
    hasher = _PREFIX_HASHED.copy()
    hasher.update(state)
    return hasher.hexdigest()


def seal(event: Event, sequence: int, previous_digest: str, stream: str | None = None) -> SealedEvent:
    """Give a candidate its place.

    Args:
        event: the candidate.
        sequence: its position in its stream, from 1.
        previous_digest: digest of the event before it, or `FIRST_PREVIOUS_DIGEST`.
        stream: the event's, where its name is known.

    Raises:
        CanonicalError: a JSON value in it has no canonical form.
        OversizedEvent: it has more than `EVENT_BYTES_MAX` bytes.
    """
    members = event.__dict__.copy()
    members["type"], members["sequence"], members["previous_digest"] = event.topic, sequence, previous_digest
    state = _quickly(event, members, canonical.DEPTH_MAX)
    if state is None:  # the slow way, which says what is wrong
        seals = {"type": event.topic, "sequence": sequence, "previous_digest": previous_digest}
        state = canonical.encode({**event.model_dump(mode="json"), **seals})
        if _REPLACED in state:
            _refuse_surrogates(event.model_dump())
    if len(state) > EVENT_BYTES_MAX:
        raise OversizedEvent(event.topic, len(state))
    stream = stream or event.stream
    # As calling the class would, in half the time.
    return tuple.__new__(SealedEvent, (stream, sequence, event, state, digest_of(state), previous_digest))


def _quickly(part: BaseModel, members: dict[str, Any], levels_left: int) -> bytes | None:
    """The bytes of an event, or of a part of one; None where only the slow way can tell.

    Args:
        members: its members and whatever is to stand beside them; they are replaced by what is written.
        levels_left: how many containers may stand inside one another.
    """
    for name in _loose_members(type(part)):
        member = members[name]
        kind: Any = type(member)
        if kind not in ATOMS:
            members[name] = _writer_of(kind)(member, levels_left - 1)
    if not _WRITTEN.issuperset(map(type, members.values())):
        return None
    return canonical.encode_written(members)


@cache
def _loose_members(cls: type[BaseModel]) -> tuple[str, ...]:
    """The members that may be anything but text, words that are text, whole numbers and flags."""
    return loose_members(cls, ATOMS.__contains__)


def loose_members(cls: type[BaseModel], is_atom: Callable[[Any], bool]) -> tuple[str, ...]:
    """The members of a model that may hold anything but values of the types that a caller takes for atoms."""
    return tuple(name for name, field in cls.model_fields.items() if not _is_atomic(field.annotation, is_atom))


def _is_atomic(annotation: Any, is_atom: Callable[[Any], bool]) -> bool:
    origin = get_origin(annotation)
    if origin is Literal:
        return all(is_atom(type(value)) for value in get_args(annotation))
    if origin is Annotated:
        return _is_atomic(get_args(annotation)[0], is_atom)
    if origin is not None:
        return origin in (Union, UnionType) and all(_is_atomic(one, is_atom) for one in get_args(annotation))
    return is_atom(getattr(annotation, "__supertype__", annotation))


def _word(member: Any, _levels_left: int) -> object:
    return member._value_


def _is_word(kind: type[object]) -> bool:
    return kind in ATOMS or issubclass(kind, StrEnum)


def _json(value: Any, levels_left: int) -> object:
    text = canonical.encode_plain(value, levels_left)
    return _AWKWARD if text is None else canonical.Fragment(text)


def _sequence(members: tuple[Any, ...], levels_left: int) -> object:
    """A tuple, which holds words or parts."""
    written: list[object] = list(members)
    for place, member in enumerate(members):
        kind: Any = type(member)
        if kind not in ATOMS:
            written[place] = _writer_of(kind)(member, levels_left - 1)
    text = canonical.encode_written(written) if _WRITTEN.issuperset(map(type, written)) else None
    return _AWKWARD if text is None else canonical.Fragment(text)


def _part(part: BaseModel, levels_left: int) -> object:
    """A part. The bytes of one that holds no JSON of its own are kept: a tool's contract stands in all of its calls."""
    known = _PARTS.get(id(part))
    # A frozen part never changes, but what it holds may: one that is not empty any more is looked at anew.
    if known is not None and known.part is part and not any(known.empty):
        return known.text
    held = [member for member in part.__dict__.values() if not _is_word(type(member))]
    state = _quickly(part, part.__dict__.copy(), levels_left)
    if state is None:
        return _AWKWARD
    text = canonical.Fragment(state)
    if not any(held) and all(type(one) is dict for one in held):
        if len(_PARTS) >= _PARTS_MAX:
            _PARTS.clear()
        _PARTS[id(part)] = _KnownPart(part, text, tuple(held))
    return text


class _KnownPart(NamedTuple):
    """A part that is kept, so that nothing else gets its id, with its bytes, and its containers, which were empty."""

    part: BaseModel
    text: object
    empty: tuple[dict[str, Any], ...]


_PARTS: dict[int, _KnownPart] = {}
_PARTS_MAX = 256
_AWKWARD: Final = object()
"""Stands for what the quick encoder may spell otherwise."""


@cache
def _writer_of(kind: type[object]) -> Callable[[Any, int], object]:
    """Looked up once a type: asking pydantic's classes about every value would cost more than all else here."""
    if issubclass(kind, StrEnum):
        return _word
    if issubclass(kind, BaseModel):
        return _part
    return _sequence if issubclass(kind, tuple) else _json


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
