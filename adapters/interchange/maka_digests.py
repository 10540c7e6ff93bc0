"""Maka's names for prefixes and boundaries, recomputed to check what an import brings. SPEC section 19.

Our own boundaries are named by the digest of their last event (SPEC section 6); these are not stored anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from . import maka_json
from .maka_envelope import MakaFormatError, canonical_text, decode

SEGMENTS_MAX = 64

_PREFIX_DOMAIN = "maka.runtime-prefix.v1"
_MANIFEST_DOMAIN = "maka.runtime-boundary-manifest.v1"
_IDENTITY_KEYS = ("sessionId", "invocationId", "runId", "turnId")
_UNIQUE_IN_LINEAGE = ("invocationId", "runId", "turnId")


class MakaSegment(NamedTuple):
    """An immutable prefix of one run: its rows 1…n and their digest."""

    identity: Mapping[str, str]
    last_event_seq: int
    last_event_id: str
    prefix_digest: str

    def to_json(self) -> JsonValue:
        """The segment as it stands in a manifest."""
        return {
            "protocol": "runtime_prefix_segment_v1",
            "identity": dict(self.identity),
            "position": {
                "lastEventSeq": self.last_event_seq,
                "eventCount": self.last_event_seq,
                "lastEventId": self.last_event_id,
            },
            "prefixDigest": self.prefix_digest,
        }


def segment_of(identity: JsonValue, rows: Iterable[tuple[JsonValue, JsonValue]]) -> MakaSegment:
    """Name a prefix.

    Args:
        identity: session, invocation, run and turn that every row belongs to.
        rows: (sequence, envelope), in order.

    Raises:
        MakaFormatError: an identity or envelope is malformed, sequences are not 1…n, a row is a partial snapshot or of
            another execution, or there are no rows.
    """
    named = _identity(identity)
    hashed = hashlib.sha256()
    _update(hashed, _PREFIX_DOMAIN)
    _update(hashed, maka_json.canonical(dict(named)))
    expected, last_id = 0, ""
    for sequence, value in rows:
        expected += 1
        if isinstance(sequence, bool) or not isinstance(sequence, int | float) or sequence != expected:
            raise MakaFormatError(f"row {expected} has sequence {sequence!r}")
        event = decode(value)
        if event["partial"]:
            raise MakaFormatError(f"row {expected} is a partial snapshot")
        if any(event[key] != named[key] for key in _IDENTITY_KEYS):
            raise MakaFormatError(f"row {expected} belongs to another execution")
        hashed.update(expected.to_bytes(8, "big"))
        _update(hashed, _row_text(event))
        last_id = str(event["id"])
    if not expected:
        raise MakaFormatError("a prefix has at least one row")
    return MakaSegment(named, expected, last_id, f"sha256:{hashed.hexdigest()}")


def manifest_digest(segments: Sequence[MakaSegment], *, checked: bool = True) -> str:
    """Name a chain of prefixes, oldest first.

    Args:
        segments: 1 to `SEGMENTS_MAX`.
        checked: refuse a chain that could be no lineage.

    Raises:
        MakaFormatError: no or too many segments, several sessions, or an id that occurs twice.
    """
    if checked:
        _require_lineage(segments)
    manifest: JsonValue = {
        "protocol": "runtime_boundary_cursor_v1",
        "segments": [segment.to_json() for segment in segments],
    }
    hashed = hashlib.sha256()
    _update(hashed, _MANIFEST_DOMAIN)
    _update(hashed, maka_json.canonical(manifest))
    return f"sha256:{hashed.hexdigest()}"


def _require_lineage(segments: Sequence[MakaSegment]) -> None:
    if not 0 < len(segments) <= SEGMENTS_MAX:
        raise MakaFormatError(f"a lineage has 1 to {SEGMENTS_MAX} segments, not {len(segments)}")
    if len({segment.identity["sessionId"] for segment in segments}) > 1:
        raise MakaFormatError("segments of several sessions")
    for key in _UNIQUE_IN_LINEAGE:
        if len({segment.identity[key] for segment in segments}) < len(segments):
            raise MakaFormatError(f"two segments have the same {key}")


def _identity(value: JsonValue) -> Mapping[str, str]:
    if not isinstance(value, dict) or value.keys() != set(_IDENTITY_KEYS):
        raise MakaFormatError("an identity has session, invocation, run and turn, and nothing else")
    named = {key: member for key, member in value.items() if isinstance(member, str) and member}
    if len(named) < len(_IDENTITY_KEYS):
        raise MakaFormatError("ids are texts that are not empty")
    return named


def _row_text(event: dict[str, JsonValue]) -> str:
    """A row's bytes; what was renamed when it was decoded keeps the name that was digested first."""
    content = event.get("content")
    if isinstance(content, dict):
        origin = content.get("origin")
        if isinstance(origin, dict) and origin.get("kind") == "legacy_automation":
            canonical_text(event)  # still must be an event that survives its encoding
            renamed: JsonValue = {**event, "content": {**content, "origin": {**origin, "kind": "automation"}}}
            return maka_json.canonical(renamed)
    return canonical_text(event)


def _update(hashed: hashlib._Hash, text: str) -> None:
    data = text.encode()
    hashed.update(len(data).to_bytes(8, "big"))
    hashed.update(data)
