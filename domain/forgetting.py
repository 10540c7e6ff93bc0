"""What is left of an event whose content a person had forgotten: its place, its digest, and who asked. SPEC section 16.

The digest keeps every count and every digest over the store as it was; the content cannot be had back from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from . import canonical
from .events.event import Timestamp
from .sealing import digest_of

FORGOTTEN_TOPIC: Final = "forgotten.v1"
"""No event has it, so that whoever reads events fails closed, programs of older versions too."""
_BEGINS: Final = b'{"at":"'
_MEMBERS: Final = frozenset({"at", "by", "digest", "type", "was"})
_DIGITS: Final = frozenset("0123456789abcdef")


class Tombstone(NamedTuple):
    """What stands in an event's place.

    Attributes:
        by, at: who had it forgotten, and when.
        digest: of the event that stood there.
        was: that event's topic.
    """

    by: str
    at: Timestamp
    digest: str
    was: str


def forgotten(state: bytes, topic: str, by: str, at: Timestamp) -> bytes:
    """The bytes that take the place of an event's; those of a tombstone stay as they are.

    Args:
        state, topic: as they are stored, damaged or not.
        by, at: who has it forgotten, and when.
    """
    if tombstone_of(state) is not None:
        return state
    members = {"at": at, "by": by, "digest": digest_of(state), "type": FORGOTTEN_TOPIC, "was": topic}
    return canonical.encode(members)


def tombstone_of(state: bytes) -> Tombstone | None:
    """Read a tombstone; None of everything else."""
    if not state.startswith(_BEGINS):
        return None
    try:
        members = canonical.decode_canonical(state)
    except ValueError:
        return None
    if not isinstance(members, dict) or members.keys() != _MEMBERS or members["type"] != FORGOTTEN_TOPIC:
        return None
    by, at, digest, was = (members[name] for name in ("by", "at", "digest", "was"))
    if not isinstance(by, str) or not isinstance(at, str) or not isinstance(was, str):
        return None
    if not isinstance(digest, str) or len(digest) != 64 or not _DIGITS.issuperset(digest):
        return None
    return Tombstone(by, at, digest, was)


def kept_digest(state: bytes) -> str:
    """The digest of the event that stands or stood in a row."""
    left = tombstone_of(state)
    return digest_of(state) if left is None else left.digest
