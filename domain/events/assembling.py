"""Events assembled of parts that are valid already, without validating them again. SPEC section 21 and ADR 0054.

Only for facts on the hot path, whose parts come from validated events, from this program's own ids and clock, or from
values that were made canonical. A property test holds them to what the validating constructor makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from pydantic import BaseModel

from .event import Event

P = ParamSpec("P")
EventT = TypeVar("EventT", bound=Event)

_SLOTS: Final = BaseModel.__dict__
_set_members = _SLOTS["__dict__"].__set__
_set_names = _SLOTS["__pydantic_fields_set__"].__set__
_set_extra = _SLOTS["__pydantic_extra__"].__set__
_set_private = _SLOTS["__pydantic_private__"].__set__


class _Layout(NamedTuple):
    """What an event of a type has: its members, and those that may be left out."""

    names: set[str]
    defaults: dict[str, Any]


_LAYOUTS: dict[Any, _Layout] = {}


def assembled(make: Callable[P, EventT], /, *_: P.args, **parts: P.kwargs) -> EventT:
    """An event of parts that are valid already; equal to what calling its class with them makes.

    Args:
        make: the class of the event.
        parts: its members, exactly of the types that validating gives: nothing is checked or converted.

    Raises:
        TypeError: a member is missing that has no constant default, or there is one that the event does not have.
    """
    names, defaults = _LAYOUTS.get(make) or _layout(make)
    members: dict[str, Any] = parts
    if members.keys() != names:
        members = {**defaults, **members}
        if members.keys() != names:
            raise TypeError(f"not the members of {make}: {sorted(members.keys() ^ names)}")
    event: Any = object.__new__(make)  # type: ignore[arg-type]
    _set_members(event, members)
    _set_names(event, names)
    _set_extra(event, None)
    _set_private(event, None)
    return event  # type: ignore[no-any-return]


def _layout(make: Any) -> _Layout:
    cls: type[Event] = make
    fields = cls.model_fields
    optional = {name: field for name, field in fields.items() if not field.is_required() and not field.default_factory}
    layout = _LAYOUTS[make] = _Layout(set(fields), {name: field.default for name, field in optional.items()})
    return layout
