"""Predicates for the shapes of foreign JSON: closed objects, whose optional members are absent but never null.

Plain predicates and not pydantic models, because these texts may hold lone surrogates, which pydantic refuses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from pydantic import JsonValue

Check: TypeAlias = Callable[[JsonValue], bool]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SAFE_INTEGER_MAX = 2**53 - 1


def anything(_value: JsonValue) -> bool:
    """Any JSON value."""
    return True


def text(value: JsonValue) -> bool:
    """A string."""
    return isinstance(value, str)


def name(value: JsonValue) -> bool:
    """A string that is not empty."""
    return isinstance(value, str) and value != ""


def flag(value: JsonValue) -> bool:
    """True or false."""
    return isinstance(value, bool)


def number(value: JsonValue) -> bool:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def record(value: JsonValue) -> bool:
    """An object."""
    return isinstance(value, dict)


def digest(value: JsonValue) -> bool:
    """A SHA-256 in the original's notation."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def integer_from(least: int) -> Check:
    """A safe integer of at least `least`, however it is spelled."""

    def check(value: JsonValue) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or not number(value):
            return False
        return value == int(value) and least <= value <= _SAFE_INTEGER_MAX

    return check


def one_of(*values: str | bool | int) -> Check:
    """One of these values, of the same type."""
    allowed = {(type(value), value) for value in values}

    def check(value: JsonValue) -> bool:
        plain = int(value) if isinstance(value, float) and value.is_integer() else value
        return isinstance(plain, str | bool | int) and (type(plain), plain) in allowed

    return check


def list_of(item: Check) -> Check:
    """An array of such items."""
    return lambda value: isinstance(value, list) and all(map(item, value))


def either(*checks: Check) -> Check:
    """A value that one of the checks takes."""
    return lambda value: any(check(value) for check in checks)


def shape(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with all the required members, some of the optional ones and no other."""
    members = {**required, **(optional or {})}

    def check(value: JsonValue) -> bool:
        return (
            isinstance(value, dict)
            and required.keys() <= value.keys()
            and value.keys() <= members.keys()
            and all(members[key](member) for key, member in value.items())
        )

    return check
