"""How stored rows are read back, and found to be what was sealed. SPEC section 6.

The quick way makes the event and seals it again: bytes that come out the same are what `seal` makes of this event, and
nothing else has to be known of them. The slow way takes whatever is left, and says what is wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from . import canonical
from .events.catalogue import EVENTS, MalformedEvent, UnknownEventType, event_from
from .events.event import Event, RunEvent, Value
from .forgetting import FORGOTTEN_TOPIC, tombstone_of
from .identifiers import RunId, SessionId, run_stream, session_stream
from .reasons import LedgerIssue
from .sealing import ATOMS, DIGEST_PREFIX, DamagedEvent, SealedEvent, StoredRecord, loose_members

_PREVIOUS = b'"previous_digest":"'
_DIGEST_CHARS = 64


def unseal(record: StoredRecord, sequence: int, previous_digest: str) -> SealedEvent:
    """Read a stored row back and check that it is what was sealed at this place.

    Args:
        record: the row.
        sequence: the position that is expected next in the stream, from 1.
        previous_digest: the digest of the event before it.

    Raises:
        DamagedEvent: the row is not the event that belongs here.
    """
    return next(unseal_after(sequence - 1, previous_digest, (record,)))


def unseal_after(
    sequence: int, digest: str, records: Iterable[StoredRecord]
) -> Generator[SealedEvent, None, tuple[int, str]]:
    """Read the rows back that follow a prefix, one by one, each as `unseal`.

    Args:
        sequence, digest: of the last event before them; 0 and `FIRST_PREVIOUS_DIGEST` where there is none.
        records: in order, without a gap.

    Returns:
        Sequence and digest of the last of them.

    Raises:
        DamagedEvent: a row is not the event that belongs there.
    """
    sha256, prefix = hashlib.sha256, DIGEST_PREFIX
    new: Callable[..., SealedEvent] = tuple.__new__  # as calling the class would, in half the time
    for record in records:
        stream, version, topic, state = record
        sequence += 1
        if version != sequence:
            raise _damaged(record, LedgerIssue.SEQUENCE_GAP, f"version {sequence} was expected")
        event = _quickly(topic, state, sequence, digest) or _slowly(record, sequence, digest)
        kind, field = _place(type(event))
        if kind + event.__dict__[field] != stream:
            raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "belongs to another stream")
        previous, digest = digest, sha256(prefix + state).hexdigest()
        yield new(SealedEvent, (stream, sequence, event, state, digest, previous))
    return sequence, digest


@cache
def _place(cls: type[Event]) -> tuple[str, str]:
    """What the stream of an event of a class begins with, and the field that it ends with: `Event.stream`."""
    if issubclass(cls, RunEvent):
        return run_stream(RunId("")), "run_id"
    return session_stream(SessionId("")), "session_id"


def event_of(record: StoredRecord) -> Event:
    """The event that a row's bytes are, whatever stands before it: its seal is not looked at.

    Raises:
        DamagedEvent: the bytes are no event of its topic.
    """
    state = record.state
    if type(state) is not bytes:  # damage may have made anything of a column
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "not bytes")
    after = state.find(_PREVIOUS) + len(_PREVIOUS)
    previous_digest = state[after : after + _DIGEST_CHARS].decode("ascii", "replace")
    event = _quickly(record.topic, state, record.version, previous_digest)
    if event is None:
        fields = _fields_of(record)
        for name in ("type", "sequence", "previous_digest"):
            fields.pop(name, None)
        event = _event_from(record, fields)
    return event


def _quickly(topic: str, state: bytes, sequence: int, previous_digest: str) -> Event | None:
    """The event of which sealing makes exactly these bytes at this place; None where that is not seen at once."""
    shape = _shape(topic)
    if shape is None:
        return None
    try:
        event = shape.validate(state, extra="ignore")  # the seals, and whatever the comparison below finds
    except ValidationError:
        return None
    fields = event.__dict__
    for name in shape.loose:
        value = fields[name]
        if type(value) not in ATOMS and not _is_plain(value):
            return None
    sealed = {**fields, "type": topic, "sequence": sequence, "previous_digest": previous_digest}
    return event if canonical.encode_quickly(sealed, _members) == state else None


class _Shape(NamedTuple):
    """How to read events of a topic.

    Attributes:
        loose: the fields that, once they are validated, may hold anything but text, words, whole numbers and flags.
    """

    validate: Callable[..., Event]
    loose: tuple[str, ...]


@cache
def _shape(topic: str) -> _Shape | None:
    cls = EVENTS.get(topic)
    if cls is None:
        return None
    cls.model_rebuild()
    return _Shape(cls.__pydantic_validator__.validate_json, _loose_fields(cls))


@cache
def _loose_fields(cls: type[BaseModel]) -> tuple[str, ...]:
    return loose_members(cls, _is_atom_or_word)


def _is_atom_or_word(kind: Any) -> bool:
    return kind in ATOMS or (isinstance(kind, type) and issubclass(kind, StrEnum))


def _is_plain(value: Any) -> bool:
    """Whether every number in a validated part of an event is spelled alike by the quick encoder."""
    kind: Any = type(value)
    if kind is dict or kind is list:
        return canonical.is_plain(value)
    if kind is tuple:
        members: Iterable[Any] = value
    else:
        loose = _loose_part(kind)
        if loose is None:
            return canonical.is_plain(value)
        members = map(value.__dict__.__getitem__, loose)
    for member in members:
        if type(member) not in ATOMS and not _is_plain(member):
            return False
    return True


@cache
def _loose_part(kind: type[Any]) -> tuple[str, ...] | None:
    """The loose fields of a part of an event, none for a word; None where it is neither."""
    if issubclass(kind, Value):
        return _loose_fields(kind)
    return () if issubclass(kind, StrEnum) else None


def _members(part: Any) -> dict[str, object]:
    """The members of a part of an event, for the encoder, which knows no other parts than these."""
    members: dict[str, object] = part.__dict__
    return members


def _slowly(record: StoredRecord, sequence: int, previous_digest: str) -> Event:
    fields = _fields_of(record)
    if (
        fields.pop("type", None) != record.topic
        or fields.pop("sequence", None) != sequence
        or fields.pop("previous_digest", None) != previous_digest
    ):
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "type, sequence or previous digest do not match")
    return _event_from(record, fields)


def _fields_of(record: StoredRecord) -> dict[str, Any]:
    if record.topic == FORGOTTEN_TOPIC and (left := tombstone_of(record.state)) is not None:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, f"its content was forgotten by {left.by} at {left.at}")
    try:
        fields = canonical.decode_canonical(record.state)
    except ValueError as error:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, f"bytes are not canonical JSON: {error}") from error
    if not isinstance(fields, dict):
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, "not a JSON object")
    return fields


def _event_from(record: StoredRecord, fields: dict[str, Any]) -> Event:
    try:
        return event_from(fields, record.topic)
    except (UnknownEventType, MalformedEvent) as error:
        raise _damaged(record, LedgerIssue.CHAIN_BROKEN, str(error)) from error


def _damaged(record: StoredRecord, kind: LedgerIssue, detail: str) -> DamagedEvent:
    return DamagedEvent(record.stream, record.version, kind, detail)
