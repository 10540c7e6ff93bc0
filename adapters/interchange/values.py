"""Foreign values in a form that our events can hold, and whether anything of them had to change."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import NamedTuple

from ...domain import canonical
from ...domain.events.event import Json
from ...domain.events.tool import Effect
from ...domain.tool_arguments import ARGUMENTS_BYTES_MAX, ParsedArguments, parse_arguments
from ...domain.tool_results import PreparedResult, prepare_result

UNKNOWN_TIME = "1970-01-01T00:00:00.000000Z"
"""Of facts in a file that holds no time at all: a reading clock would make another fact at each import (F16)."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with what has no UTF-8 form replaced."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def text_of(value: object) -> str:
    """A JSON value as text: a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_strict(value: object) -> bool:
    """Whether a value is strict JSON, as it stands."""
    try:
        canonical.encode(value)
    except canonical.CanonicalError:
        return False
    return True


class Arguments(NamedTuple):
    """Arguments as a call holds them, and the provider's text where that is not the canonical one."""

    args: Json = None
    args_text: str | None = None
    provider_text: str | None = None

    @property
    def key(self) -> bytes:
        """Equal for equal arguments."""
        return b"t" + self.args_text.encode() if self.args_text is not None else b"v" + canonical.encode(self.args)


def arguments_of(value: Json, *, spelled: bool) -> Arguments:
    """Read arguments strictly; what is not strict JSON is kept as text and never dispatched.

    Args:
        value: as the file holds it.
        spelled: it is a text that spells the arguments.
    """
    if not spelled and is_strict(value) and len(canonical.encode(value)) <= ARGUMENTS_BYTES_MAX:
        return Arguments(value)
    text = text_of(value) if value is not None else ""
    outcome = parse_arguments(text)
    if not isinstance(outcome, ParsedArguments):
        return Arguments(args_text=outcome.text)
    same = canonical.encode(outcome.args).decode() == text
    return Arguments(outcome.args, provider_text=None if same or not spelled else text)


def result_of(value: Json, *, is_error: bool) -> PreparedResult:
    """A result within bounds; what has no strict form is kept as its JSON text."""
    kept = value if is_strict(value) else storable(text_of(value))
    prepared = prepare_result(_unwrapped(kept))
    return PreparedResult(
        prepared.result,
        is_error,
        Effect.UNKNOWN if is_error else Effect.DONE,
        prepared.code,
        prepared.original_length,
        prepared.original_digest,
    )


def _unwrapped(value: Json) -> Json:
    """A list of one text block is that text."""
    if isinstance(value, list) and len(value) == 1:
        block = value[0]
        if isinstance(block, dict) and set(block) == {"type", "text"} and block["type"] == "text":
            return block["text"]
    return value


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
