"""Changes all that can be changed in what somebody was handed, as code that is not ours may."""

from __future__ import annotations

from typing import Any, Final

CHANGED: Final = "CHANGED"


def change_all(given: Any) -> int:
    """Change every dictionary and list that a value leads to; returns how many there were."""
    return _change(given, set())


def _change(given: Any, seen: set[int]) -> int:
    if id(given) in seen:
        return 0
    seen.add(id(given))
    if isinstance(given, dict):
        changed = sum(_change(member, seen) for member in [*given.values()])
        given[CHANGED] = CHANGED
        return changed + 1
    if isinstance(given, list):
        changed = sum(_change(member, seen) for member in [*given])
        given.append(CHANGED)
        return changed + 1
    if isinstance(given, tuple):
        return sum(_change(member, seen) for member in given)
    fields = getattr(type(given), "model_fields", None) or getattr(type(given), "__dataclass_fields__", None) or ()
    return sum(_change(getattr(given, name, None), seen) for name in fields)
