"""The one canonical encoder: RFC 8785 bytes, strict decoding, and the digests over them. SPEC section 6.

orjson writes the text. It agrees with RFC 8785 on structure, strings and safe integers; what it may spell or sort
differently (some doubles, keys beyond the basic plane) is handed to it already spelled and sorted. A property test
compares every byte with the reference implementation.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

import orjson
import rfc8785

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import JsonValue

DEPTH_MAX: Final = 200
"""Containers inside containers; deeper values are refused."""
SAFE_INTEGER_MAX: Final = 2**53 - 1
"""Above this, and below its negative, not every integer has a double of its own."""

Fragment: Final = orjson.Fragment
"""Canonical bytes that the quick encoders take as they are."""
_OPTIONS: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_SUBCLASS
_OPTIONS_OF_PARTS: Final = _OPTIONS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SCALARS: Final = frozenset({str, int, bool, type(None)})
# Fractions in this range are printed without exponent by both; integral doubles never look like this.
_PLAIN_FLOAT_MIN, _PLAIN_FLOAT_MAX = 1e-3, 1e15
# The longest integer that ECMAScript prints without exponent is below 1e21.
_INTEGER_CHARS_MAX: Final = 22


class CanonicalError(ValueError):
    """A value or text has no canonical form; nothing is ever coerced into one.

    Attributes:
        reason: what is wrong, without content.
        path: keys and indexes from the root to the offending place, as far as known.
    """

    def __init__(self, reason: str, path: tuple[str | int, ...] = ()) -> None:
        where = f" at {'/'.join(map(str, path))!r}" if path else ""
        super().__init__(f"{reason}{where}")
        self.reason = reason
        self.path = path


def encode(value: object) -> bytes:
    """Encode a JSON value (dict, list, str, int, float, bool, None; no subclasses) as RFC 8785 bytes.

    Raises:
        CanonicalError: the value holds anything else, a number that JSON cannot carry, a lone surrogate, or more
            than `DEPTH_MAX` levels.
    """
    text = encode_plain(value)
    if text is not None:
        return text
    try:
        return orjson.dumps(_spelled(value, DEPTH_MAX))
    except orjson.JSONEncodeError as error:
        raise CanonicalError("text holds a lone surrogate") from error


def decode(data: bytes | str) -> JsonValue:
    """Decode foreign JSON text strictly; integers beyond the safe range become doubles where that loses nothing.

    Raises:
        CanonicalError: not JSON, duplicate keys, NaN or Infinity, a number out of range, a lone surrogate, not UTF-8,
            or more than `DEPTH_MAX` levels.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        value: JsonValue = _DECODER.decode(text)
    except CanonicalError:
        raise
    except UnicodeDecodeError as error:
        raise CanonicalError("not UTF-8") from error
    except ValueError as error:
        raise CanonicalError(f"not JSON: {error.args[0] if error.args else error}") from error
    except RecursionError as error:
        raise CanonicalError(f"more than {DEPTH_MAX} levels") from error
    encode(value)  # finds what the decoder lets through: lone surrogates, depth
    return value


def decode_canonical(data: bytes) -> JsonValue:
    """Decode stored bytes, which must be exactly what `encode` makes of their value.

    Raises:
        CanonicalError: they are not: the bytes are damaged, or were never written by this program.
    """
    try:
        value: JsonValue = orjson.loads(data)
        if (
            orjson.dumps(value, None, _OPTIONS) == data
            and is_plain(value)
            and (data.isascii() or _keys_sort_alike(value))
        ):
            return value
    except orjson.JSONDecodeError as error:
        raise CanonicalError("not JSON") from error
    except orjson.JSONEncodeError:  # unsafe integers: judged below
        pass
    # orjson reads integers beyond the safe range as integers; the strict decoder makes them the doubles they are.
    value = decode(data)
    if encode(value) != data:
        raise CanonicalError("not in canonical form")
    return value


def encode_quickly(value: object, unfold: Callable[[Any], object]) -> bytes | None:
    """Encode a value of which every part is known to be plain; None where only `encode` can tell.

    Args:
        value: its own members may be words of an enumeration, tuples, or whatever `unfold` makes members of.
        unfold: raises TypeError for what it does not know.
    """
    try:
        text = orjson.dumps(value, unfold, _OPTIONS_OF_PARTS)
    except orjson.JSONEncodeError:
        return None
    return text if text.isascii() or _keys_sort_alike(orjson.loads(text)) else None


def sha256_hex(data: bytes) -> str:
    """SHA-256 of the bytes, as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest(domain: str, data: bytes) -> str:
    """SHA-256, in lower-case hex, over the length-prefixed domain string and the data: no two domains share a digest.

    The length is that of the domain's UTF-8 bytes, in 8 bytes, big-endian.
    """
    return hashlib.sha256(domain_prefix(domain) + data).hexdigest()


def args_hash(tool_name: str, args: object) -> str:
    """Hash of a tool call's name and strict JSON arguments, in lower-case hex.

    Raises:
        CanonicalError: the arguments are not strict JSON.
    """
    return sha256_hex(encode({"args": args, "toolName": tool_name}))


@lru_cache(maxsize=64)
def domain_prefix(domain: str) -> bytes:
    """What `digest` puts before the data."""
    encoded = domain.encode()
    return len(encoded).to_bytes(8, "big") + encoded


def encode_written(value: dict[str, Any] | list[Any]) -> bytes | None:
    """Encode text, flags, whole numbers and `Fragment`s under names of plain ASCII, or in a list; None where only
    `encode` can tell.
    """
    try:
        return orjson.dumps(value, None, _OPTIONS)
    except orjson.JSONEncodeError:
        return None


def encode_plain(value: object, levels_left: int = DEPTH_MAX) -> bytes | None:
    """Encode a value that orjson spells and sorts as RFC 8785 does, else None: this is the hottest path of all.

    Args:
        value: any.
        levels_left: how many containers may stand inside one another.
    """
    try:
        if is_plain(value, levels_left):
            text = orjson.dumps(value, None, _OPTIONS)
            if text.isascii() or _keys_sort_alike(value):
                return text
    except orjson.JSONEncodeError:  # unsafe integers, keys that are not text, lone surrogates: judged elsewhere
        pass
    return None


def is_plain(value: Any, levels_left: int = DEPTH_MAX) -> bool:
    """Tell whether orjson spells each number of the value as RFC 8785 does; types that are not JSON are not plain.

    Args:
        value: any.
        levels_left: how many containers may stand inside one another.
    """
    kind = type(value)
    if kind is dict:
        members: Iterable[object] = value.values()
    elif kind is list:
        members = value
    else:
        return kind in _SCALARS or (kind is float and _is_plain_float(value))
    if levels_left == 0:
        return False
    if _SCALARS.issuperset(map(type, members)):
        return True
    for member in members:
        if type(member) not in _SCALARS and not is_plain(member, levels_left - 1):
            return False
    return True


def _is_plain_float(number: float) -> bool:
    return _PLAIN_FLOAT_MIN <= abs(number) <= _PLAIN_FLOAT_MAX and not number.is_integer()


def _keys_sort_alike(value: Any) -> bool:
    """Tell whether keys sort alike by code point and by UTF-16 code unit: none reaches the surrogates or beyond."""
    if type(value) is dict:
        names = "".join(value)
        if not names.isascii() and max(names) >= "\ud800":
            return False
        members: Iterable[object] = value.values()
    else:
        members = value if type(value) is list else ()
    for member in members:
        if type(member) not in _SCALARS and not _keys_sort_alike(member):
            return False
    return True


def _spelled(value: Any, levels_left: int) -> object:
    """Copy a value for orjson with every awkward number spelled out and keys in order; refuse what is not JSON."""
    kind = type(value)
    if kind is int:
        return value if -SAFE_INTEGER_MAX <= value <= SAFE_INTEGER_MAX else _spelled_float(_as_double(value))
    if kind is float:
        return _spelled_float(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        members: Iterable[tuple[str | int, object]] = [(key, value[key]) for key in sorted(value, key=_code_units)]
    elif kind is list:
        members = enumerate(value)
    else:
        raise CanonicalError(f"{kind.__name__} is not a JSON type")
    if levels_left == 0:
        raise CanonicalError(f"more than {DEPTH_MAX} levels")
    copy: dict[str | int, object] = {}
    for place, member in members:
        try:
            copy[place] = _spelled(member, levels_left - 1)
        except CanonicalError as error:
            raise CanonicalError(error.reason, (place, *error.path)) from error.__cause__
    return copy if kind is dict else list(copy.values())


def _spelled_float(number: float) -> object:
    if _is_plain_float(number):
        return number
    if number.is_integer() and abs(number) <= SAFE_INTEGER_MAX:
        return int(number)
    try:
        return orjson.Fragment(rfc8785.dumps(number))
    except rfc8785.FloatDomainError as error:
        raise CanonicalError("NaN and Infinity are not JSON") from error


def _as_double(number: int) -> float:
    """Return the double that the integer denotes if that prints as the same text."""
    if number.bit_length() <= 70 and rfc8785.dumps(double := float(number)) == b"%d" % number:
        return double
    raise CanonicalError("the integer has no double of its own")


def _code_units(key: object) -> bytes:
    if type(key) is not str:
        raise CanonicalError(f"a key of type {type(key).__name__} is not text")
    try:
        return key.encode("utf-16-be")
    except UnicodeEncodeError as error:
        raise CanonicalError("a key holds a lone surrogate") from error


def _pairs_without_duplicates(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise CanonicalError("a key occurs twice in one object")
    return members


def _parse_integer(text: str) -> int | float:
    if len(text) > _INTEGER_CHARS_MAX:
        raise CanonicalError("the integer has no double of its own")
    number = int(text)
    return number if -SAFE_INTEGER_MAX <= number <= SAFE_INTEGER_MAX else _as_double(number)


def _parse_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise CanonicalError("the number is out of range")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise CanonicalError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs_without_duplicates,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    parse_constant=_refuse_constant,
)
