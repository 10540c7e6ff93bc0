"""JSON whose numbers say more than a double holds: nothing of a foreign value may change unseen. SPEC section 19.

Ours is strict (`domain.canonical`); what has no strict form is kept as the text that spells it, and this is its home.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Final

from pydantic import JsonValue

from ...domain import canonical

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ALWAYS_EXACT: Final = re.compile(r"-?[0-9.]{1,15}", re.ASCII)


class InexactNumber(float):
    """A number of a file that no double holds, such as `1e400` or one of thirty digits: the nearest, and its spelling.

    It is no strict JSON, and equal only to what is spelled alike.
    """

    spelling: str

    def __new__(cls, spelling: str) -> InexactNumber:  # noqa: D102 (see the class)
        made = super().__new__(cls, spelling)
        made.spelling = spelling
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InexactNumber) and self.spelling == other.spelling

    def __hash__(self) -> int:
        return hash(self.spelling)


def number_of(spelling: str) -> float:
    """A number as the double that it is, or as an `InexactNumber`.

    Up to seventeen digits name a double, as some programs write all of them; more must say exactly what it is.
    """
    double = float(spelling)
    if _ALWAYS_EXACT.fullmatch(spelling):
        return double
    try:
        exact = Decimal(spelling)
    except InvalidOperation:  # an exponent of twenty digits
        return InexactNumber(spelling)
    return double if exact in {Decimal(repr(double)), Decimal(f"{double:.16e}")} else InexactNumber(spelling)


def storable(text: str) -> str:
    """The text with what has no UTF-8 form replaced."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def is_strict(value: object) -> bool:
    """Whether a value is strict JSON, as it stands."""
    try:
        canonical.encode(value)
    except canonical.CanonicalError:
        return False
    return True


def text_of(value: JsonValue, *, sort: bool = False) -> str:
    """The JSON text of a value, numbers as they were spelled, half a character as its escape.

    Args:
        value: any, however deep.
        sort: members in one order, so that equal values have equal texts.
    """
    parts: list[str] = []
    waiting: list[JsonValue | _Written] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Written):
            parts.append(one.text)
        elif isinstance(one, dict):
            members: list[JsonValue | _Written] = []
            for key in sorted(one) if sort else one:
                members += (_Written(f"{', ' if members else '{'}{_string(key)}: "), one[key])
            waiting += reversed([*members, _Written("}" if members else "{}")])
        elif isinstance(one, list):
            items: list[JsonValue | _Written] = []
            for item in one:
                items += (_Written(", " if items else "["), item)
            waiting += reversed([*items, _Written("]" if items else "[]")])
        elif isinstance(one, str):
            parts.append(_string(one))
        else:
            parts.append(one.spelling if isinstance(one, InexactNumber) else json.dumps(one))
    return "".join(parts)


def key_of(value: JsonValue) -> bytes:
    """Equal for values that say the same: unlike Python, true is not 1, and two numbers beyond a double are two."""
    try:
        return b"v" + canonical.encode(value)
    except canonical.CanonicalError:
        return b"t" + text_of(value, sort=True).encode()


def has_changed_as_doubles(value: JsonValue) -> bool:
    """Whether a number in the value is another one where every number is a double."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, InexactNumber) or (isinstance(one, int) and not _is_double(one)):
            return True
    return False


def _is_double(whole: int) -> bool:
    try:
        return int(float(whole)) == whole
    except OverflowError:
        return False


class _Written:
    """What is written between values."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _string(text: str) -> str:
    return _LONE_SURROGATE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", json.dumps(text, ensure_ascii=False))
