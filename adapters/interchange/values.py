"""Foreign values in a form that our events can hold, and whatever of them had to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from ...domain import canonical
from ...domain.events.event import Json
from ...domain.events.tool import Effect
from ...domain.tool_arguments import ARGUMENTS_BYTES_MAX, NotStrictJson, parse_arguments
from ...domain.tool_results import PreparedResult, prepare_result
from ...ports.history_format import FindingCode, Place
from .exact_json import has_changed_as_doubles, is_strict, key_of, storable, text_of
from .lines import Reading, parsed

UNKNOWN_TIME = "1970-01-01T00:00:00.000000Z"
"""Of facts in a file that holds no time at all: a reading clock would make another fact at each import (F16)."""


class Change(NamedTuple):
    """What had to change for a value to be kept."""

    code: FindingCode
    detail: str


class Arguments(NamedTuple):
    """Arguments as a call holds them, and the provider's text where that is not the canonical one.

    Attributes:
        key: equal for arguments that the file holds alike, also where what is kept of them is not all.
        changes: what is kept otherwise than it was.
    """

    key: bytes
    args: Json = None
    args_text: str | None = None
    provider_text: str | None = None
    changes: tuple[Change, ...] = ()


def arguments_of(value: Json, *, spelled: bool) -> Arguments:
    """Read arguments strictly; what is not strict JSON is kept as text and never dispatched.

    Args:
        value: as the file holds it.
        spelled: it is a text that spells the arguments.
    """
    if not spelled and is_strict(value) and len(canonical.encode(value)) <= ARGUMENTS_BYTES_MAX:
        return Arguments(key_of(value), value)
    text = value if spelled and isinstance(value, str) else "" if value is None else text_of(value)
    key, outcome = (_key_of_text(text) if spelled else key_of(value)), parse_arguments(text)
    if isinstance(outcome, NotStrictJson):
        as_text = not spelled and value is not None
        return Arguments(key, args_text=outcome.text, changes=tuple(_kept_of(text, outcome, as_text=as_text)))
    exact = has_changed_as_doubles(parsed(text))
    same = canonical.encode(outcome.args).decode() == text or not (spelled or exact)
    changes = (Change(FindingCode.NUMBER_CHANGED, "in the arguments, whose text is kept beside"),) if exact else ()
    return Arguments(key, outcome.args, provider_text=None if same else text, changes=changes)


def _key_of_text(text: str) -> bytes:
    try:
        return key_of(parsed(text))
    except ValueError:
        return b"t" + text.encode("utf-8", "surrogatepass")


def _kept_of(text: str, outcome: NotStrictJson, *, as_text: bool) -> Iterator[Change]:
    if as_text:
        yield Change(FindingCode.KEPT_AS_TEXT, f"arguments: {outcome.detail}")
    if len(outcome.text) < len(text):
        yield Change(FindingCode.CUT_SHORT, f"{outcome.size_bytes} bytes of arguments, of which the beginning is kept")
    if storable(text) != text:
        yield Change(FindingCode.TEXT_CHANGED, "half a character in the arguments was replaced")


def result_of(value: Json, *, is_error: bool) -> tuple[PreparedResult, tuple[Change, ...]]:
    """A result within bounds; what has no strict form is kept as its JSON text."""
    kept, changes = _unwrapped(value), list[Change]()
    if isinstance(kept, str):
        if storable(kept) != kept:
            changes.append(Change(FindingCode.TEXT_CHANGED, "half a character in the result was replaced"))
        kept = storable(kept)
    elif not is_strict(kept):
        changes.append(Change(FindingCode.KEPT_AS_TEXT, "a result that is no strict JSON"))
        kept = text_of(kept)
    prepared = prepare_result(kept)
    if prepared.original_length is not None:
        length = prepared.original_length
        changes.append(Change(FindingCode.CUT_SHORT, f"{length} bytes of a result, of which the beginning is kept"))
    effect = Effect.UNKNOWN if is_error else Effect.DONE
    return replace(prepared, is_error=is_error, effect=effect), tuple(changes)


def _unwrapped(value: Json) -> Json:
    """A list of one text block is that text."""
    if isinstance(value, list) and len(value) == 1:
        block = value[0]
        if isinstance(block, dict) and set(block) == {"type", "text"} and block["type"] == "text":
            return block["text"]
    return value


def time_in(members: dict[str, Json], name: str, place: Place, reading: Reading) -> str | None:
    """The time in a member; None where there is none, and where it cannot be read, which is told."""
    value = members.get(name)
    moment = time_of(value)
    if moment is None and value is not None:
        reading.tell_once(FindingCode.TIME_NOT_READ, place, f"{name}: the time before it stands in its place")
    return moment


def time_of(value: object) -> str | None:
    """A time as our events write it: from ISO 8601 text, or seconds since 1970; None where it is neither.

    A text without zone is taken for UTC.
    """
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment.year:04d}{moment:-%m-%dT%H:%M:%S.%f}Z"
