"""Decoding of foreign event envelopes, and their canonical bytes. SPEC section 19."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import JsonValue

from . import maka_json, maka_schema

Envelope: TypeAlias = dict[str, JsonValue]

_TERMINAL_STATUSES = frozenset({"completed", "failed", "aborted", "cancelled"})


class MakaFormatError(ValueError):
    """A foreign text is not an event envelope, or an envelope has no bytes that could be read back."""


def decode(value: JsonValue) -> Envelope:
    """Check an envelope strictly, and bring its text content to the one form that the original stores.

    Raises:
        MakaFormatError: the value is not an envelope of the known shape.
    """
    if not isinstance(value, dict) or not maka_schema.envelope(value):
        raise MakaFormatError("not an event envelope of the known shape")
    content = value.get("content")
    if isinstance(content, dict) and content["kind"] == "text":
        return {**value, "content": _normal_text(content)}
    return value


def canonical_text(value: JsonValue) -> str:
    """The canonical JSON of an envelope, which is what its digests cover.

    Raises:
        MakaFormatError: it does not decode, or a number in it would not survive.
    """
    envelope = decode(value)
    if maka_json.holds_negative_zero(envelope):
        raise MakaFormatError("a negative zero would not survive")
    try:
        return maka_json.canonical(envelope)
    except maka_json.MakaJsonError as error:
        raise MakaFormatError(str(error)) from error


def is_terminal(envelope: JsonValue) -> bool:
    """Whether an envelope ends its invocation."""
    if not isinstance(envelope, dict):
        return False
    actions = envelope.get("actions")
    ends = isinstance(actions, dict) and actions.get("endInvocation") is True
    status = envelope.get("status")
    return ends or (isinstance(status, str) and status in _TERMINAL_STATUSES)


def _normal_text(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    normal = {key: member for key, member in content.items() if key != "providerOptions"}
    if normal.get("displayText") == normal["text"]:
        normal.pop("displayText", None)
    for key in ("attachments", "quotes"):
        if normal.get(key) == []:
            del normal[key]
    origin = normal.get("origin")
    if isinstance(origin, dict) and origin["kind"] == "automation":
        normal["origin"] = {**origin, "kind": "legacy_automation"}
    return normal
