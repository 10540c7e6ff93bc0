"""The one place where a provider's argument text becomes arguments, or is refused. SPEC sections 5 and 8, F5.

Nothing is repaired or salvaged: a cut text would become a shorter call that passes the schema (field report r3-106).
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from . import canonical
from .events.event import Json
from .reasons import ResponseCode

ARGUMENTS_BYTES_MAX: Final = 256 * 1024
"""Bound of a call's arguments, as the provider wrote them and as they are stored."""


class ParsedArguments(NamedTuple):
    """The text is strict JSON; whether it fits the tool's schema is the preflight's question."""

    args: Json


class NotStrictJson(NamedTuple):
    """The text will never be dispatched; the call is recorded with `text` and answered with `code`.

    Attributes:
        code: `args_not_strict_json` or `args_too_large`.
        detail: what is wrong, for the model and for people, without content.
        size_bytes: UTF-8 bytes of the provider's text, or of its stored form where only that is too large.
        text: the provider's text, cut on a code-point border to what fits a stored call.
    """

    code: ResponseCode
    detail: str
    size_bytes: int
    text: str


ArgumentsOutcome: TypeAlias = ParsedArguments | NotStrictJson


def parse_arguments(text: str, bytes_max: int = ARGUMENTS_BYTES_MAX) -> ArgumentsOutcome:
    """Read the arguments of a call strictly: no duplicate keys, NaN, Infinity, lone surrogates or unsafe integers.

    Args:
        text: the raw text of a finished call; an empty one is not JSON.
        bytes_max: bound in bytes of UTF-8, for the text and for its canonical form.
    """
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    if size_bytes > bytes_max:
        return _too_large(size_bytes, text, bytes_max)
    try:
        args = canonical.decode(text)
        stored_bytes = len(canonical.encode(args))
    except canonical.CanonicalError as error:
        return NotStrictJson(ResponseCode.ARGS_NOT_STRICT_JSON, str(error), size_bytes, _storable(text, bytes_max))
    if stored_bytes > bytes_max:  # 1e20 is written with four bytes and stored with twenty-one
        return _too_large(stored_bytes, text, bytes_max)
    return ParsedArguments(args)


def _too_large(size_bytes: int, text: str, bytes_max: int) -> NotStrictJson:
    detail = f"{size_bytes} bytes where {bytes_max} are allowed"
    return NotStrictJson(ResponseCode.ARGS_TOO_LARGE, detail, size_bytes, _storable(text, bytes_max))


def _storable(text: str, bytes_max: int) -> str:
    kept = text[:bytes_max].encode("utf-8", "replace").decode()  # a lone surrogate cannot be stored
    while len(canonical.encode(kept)) > bytes_max + 2:  # two for its quotes; escapes can make it six times as long
        kept = kept[: len(kept) // 2]
    return kept
