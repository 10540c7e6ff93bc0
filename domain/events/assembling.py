"""Events assembled of parts that are valid already, without validating them again. SPEC section 21 and ADR 0054.

Only for facts on the hot path, whose parts come from validated events, from this program's own ids and clock, or from
values that were made canonical. A property test holds them to what the validating constructor makes.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import BaseModel

from .event import Event

EventT = TypeVar("EventT", bound=Event)

_SLOTS: Final = BaseModel.__dict__
_set_members = _SLOTS["__dict__"].__set__
_set_names = _SLOTS["__pydantic_fields_set__"].__set__
_set_extra = _SLOTS["__pydantic_extra__"].__set__
_set_private = _SLOTS["__pydantic_private__"].__set__


_NAMES: dict[type[Event], set[str]] = {}


def assembled(make: type[EventT], members: dict[str, Any]) -> EventT:
    """An event of members that are valid already; equal to what validating them makes.

    Args:
        make: the class of the event.
        members: all of them, exactly of the types that validating gives: nothing is checked or converted. The event
            keeps this dictionary.

    Raises:
        TypeError: a member is missing, or there is one that the event does not have.
    """
    names = _NAMES.get(make)
    if names is None:
        names = _NAMES[make] = set(make.model_fields)
    if members.keys() != names:
        raise TypeError(f"not the members of {make.__name__}: {sorted(members.keys() ^ names)}")
    event = object.__new__(make)
    _set_members(event, members)
    _set_names(event, names)
    _set_extra(event, None)
    _set_private(event, None)
    return event
