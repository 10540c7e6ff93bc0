"""JSON as Maka reads and writes it: doubles, its own key order, and its hash of tool arguments.

Ours is RFC 8785 (`domain.canonical`). This encoding exists to read foreign ledgers and check their digests; nothing of
ours is stored or hashed with it. SPEC section 19.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import NoReturn

from pydantic import JsonValue

from .maka_collation import CollationKey, collation_key

_ARRAY_INDEX = re.compile(r"(0|[1-9][0-9]{0,9})", re.ASCII)
_ARRAY_INDEX_MAX = 2**32 - 2
_STARTS_WITH_DIGIT = re.compile("^[0-9]", re.MULTILINE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_CHARS_MAX = 400
"""Integers with more characters are read as doubles at once, which saves a quadratic conversion."""
_SORTED_ARRAY_KEYS = frozenset({"required", "enum"})


class MakaJsonError(ValueError):
    """A text is not JSON, or a value has no bytes in this encoding."""


def parse(
    text: str,
    object_of: Callable[[list[tuple[str, JsonValue]]], object] | None = None,
    number_of: Callable[[str], float] = float,
) -> JsonValue:
    """Read JSON as ECMAScript does: the last of repeated keys wins, `-0` keeps its sign, escaped lone surrogates pass.

    Args:
        text: one JSON value.
        object_of: makes an object from its members, where a reader wants more of them than ECMAScript does.
        number_of: makes a number from its spelling, where a reader wants more of it than the double.

    Raises:
        MakaJsonError: the text is not JSON, or nests too deep to read.
    """
    try:
        value: JsonValue = json.loads(
            text,
            parse_float=number_of,
            parse_int=lambda spelling: _integer(spelling, number_of),
            parse_constant=_refuse_constant,
            object_pairs_hook=object_of,
        )
    except ValueError as error:
        raise MakaJsonError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise MakaJsonError("nested too deep") from error
    return value


def canonical(value: JsonValue) -> str:
    """The value's one text: no white space, index-like keys first in numeric order, then by UTF-16 code unit.

    Raises:
        MakaJsonError: a number is not finite, or the value nests too deep.
    """
    parts: list[str] = []
    try:
        _write(value, parts)
    except RecursionError as error:
        raise MakaJsonError("nested too deep") from error
    return "".join(parts)


def args_hash(tool_name: str, args: JsonValue) -> str:
    """The hash that a foreign dispatch carries for its call.

    Two oddities of the original are kept: keys named `__proto__` are left out, and an array right under `required` or
    `enum` is sorted by the machine's locale, for which the order of `maka_collation` stands.

    Raises:
        MakaJsonError: the name is empty, or the arguments are not strict JSON.
    """
    if not tool_name:
        raise MakaJsonError("a tool call has a name")
    canonical(args)
    return "sha256:" + sha256_hex(canonical(_identity({"toolName": tool_name, "args": args}, None)))


def sha256_hex(text: str) -> str:
    """SHA-256 over the UTF-8 bytes of a text of this encoding."""
    return hashlib.sha256(text.encode()).hexdigest()


def holds_negative_zero(value: JsonValue) -> bool:
    """Whether a `-0` stands anywhere in the value: it does not survive its own encoding."""
    if isinstance(value, dict):
        return any(map(holds_negative_zero, value.values()))
    if isinstance(value, list):
        return any(map(holds_negative_zero, value))
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def _integer(text: str, number_of: Callable[[str], float]) -> int | float:
    if text == "-0":
        return -0.0
    return int(text) if len(text) < _INTEGER_CHARS_MAX else number_of(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _write(value: JsonValue, parts: list[str]) -> None:
    if isinstance(value, dict):
        separator = "{"
        for key in _ordered(value):
            parts += (separator, _string(key), ":")
            _write(value[key], parts)
            separator = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for item in value:
            parts.append(separator)
            _write(item, parts)
            separator = ","
        parts.append("]" if value else "[]")
    elif isinstance(value, str):
        parts.append(_string(value))
    elif value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    else:
        parts.append(_number(value))


def _ordered(members: Iterable[str]) -> list[str]:
    """Keys in the order of the encoding; most objects have none that could be an index or sorts by its code units."""
    keys = sorted(members)
    joined = "\n".join(keys)
    if joined.isascii() and not _STARTS_WITH_DIGIT.search(joined):
        return keys
    return sorted(keys, key=_key_order)


def _key_order(key: str) -> tuple[bool, int, bytes]:
    if _ARRAY_INDEX.fullmatch(key) and (index := int(key)) <= _ARRAY_INDEX_MAX:
        return (False, index, b"")
    return (True, 0, key.encode("utf-16-be", "surrogatepass"))


def _string(text: str) -> str:
    written = encode_basestring(text)
    if written.isascii():
        return written
    return _LONE_SURROGATE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", written)


def _number(value: int | float) -> str:
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise MakaJsonError("a number is not finite")
    return ecmascript_number(double)


def ecmascript_number(double: float) -> str:
    """A finite double as ECMAScript prints it: shortest digits, exponents only below 1e-6 and from 1e21 on."""
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    mantissa, _, exponent = repr(abs(double)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))  # where the decimal point stands
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        text = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        lead = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        text = f"{lead}e{point - 1:+d}"
    return sign + text


def _collated(value: JsonValue) -> CollationKey:
    return collation_key(canonical(value))


def _identity(value: JsonValue, parent_key: str | None) -> JsonValue:
    """The value as the original feeds it to its hash."""
    if isinstance(value, dict):
        return {key: _identity(member, key) for key, member in value.items() if key != "__proto__"}
    if isinstance(value, list):
        items = [_identity(item, None) for item in value]
        return sorted(items, key=_collated) if parent_key in _SORTED_ARRAY_KEYS else items
    return value
