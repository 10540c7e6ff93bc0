"""What is handed out belongs to whoever gets it: copies that nothing of a run's state hangs on. ADR 0091.

Events and items are frozen, and the JSON in them is not. Whoever hands one to code that is not ours, or takes JSON from
there that was not read from bytes, makes it its own here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from .events.assembling import assembled
from .events.event import Event
from .events.tool import RecordedContract, ToolDispatched
from .replay.items import CallItem, Item, ResultItem, TextItem, ThinkingItem

_CONTAINERS: Final = frozenset({dict, list})
ValueT = TypeVar("ValueT")
EventT = TypeVar("EventT", bound=Event)


def own(value: ValueT) -> ValueT:
    """A JSON value that shares no container with the one given; what cannot be changed is the same.

    >>> shown = {"paid": [10]}
    >>> mine = own(shown)
    >>> mine["paid"].append(99)
    >>> shown
    {'paid': [10]}

    Args:
        value: strict JSON; of anything else what is neither a dictionary nor a list is the same.

    Raises:
        RecursionError: it is deeper than any JSON may be, or inside itself.
    """
    given: Any = value
    kind = type(given)
    if kind is dict:
        copy: Any = given.copy()
        for name, member in given.items():
            if type(member) in _CONTAINERS:
                copy[name] = own(member)
        value = copy
    elif kind is list:
        copy = [own(member) if type(member) in _CONTAINERS else member for member in given]
        value = copy
    return value


def own_item(item: Item) -> Item:
    """An item of a history whose JSON is nobody else's."""
    match item:
        case CallItem(args=args, provider_options=options):
            return item._replace(args=own(args), provider_options=own(options))
        case ResultItem(result=result) if type(result) in _CONTAINERS:
            return item._replace(result=own(result))
        case TextItem(provider_options=options) | ThinkingItem(provider_options=options) if options is not None:
            return item._replace(provider_options=own(options))
        case _:
            return item


def own_items(items: Iterable[Item]) -> tuple[Item, ...]:
    """A history whose JSON is nobody else's."""
    return tuple(map(own_item, items))


def own_event(event: EventT) -> EventT:
    """A fact whose JSON is nobody else's; equal to the one given."""
    given: dict[str, Any] = event.__dict__
    members = {name: own(value) if type(value) in _CONTAINERS else value for name, value in given.items()}
    if isinstance(event, ToolDispatched):
        contract: RecordedContract = given["contract"]
        members["contract"] = contract.model_copy(update={"parameters": own(contract.parameters)})
    kind: type[EventT] = type(event)
    return assembled(kind, members)
