"""Every event by its topic, and decoding of stored bytes. The topic, not the Python name, is what is stored.

SPEC section 5: an unknown type or a newer version fails closed with an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from . import model, outside, run, session, tool
from .event import Event, RunEvent, SessionEvent

_MODULES = (session, run, model, tool, outside)

EVENTS: Mapping[str, type[Event]] = {
    cls.topic: cls
    for module in _MODULES
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, Event) and cls.topic and cls.__module__ == module.__name__
}
"""Topic -> class, for all events of SPEC section 5."""

RUN_EVENTS: frozenset[type[Event]] = frozenset(cls for cls in EVENTS.values() if issubclass(cls, RunEvent))
"""Those of runs. Looking a type up here takes a tenth of asking `isinstance`, which pydantic's classes make slow."""

UPCASTS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Older topic -> pure dict-to-dict upcast that yields the next version's topic in "type". None is older yet."""

AFTER_TERMINAL: frozenset[str] = frozenset(
    {
        tool.ToolReconciled.topic,
        tool.ToolResponded.topic,
        tool.ToolRecoveryDecided.topic,
        tool.ToolAttested.topic,
        tool.ToolRedeliveryStarted.topic,
        outside.BackgroundSettled.topic,
        outside.PermissionDecided.topic,
        outside.CheckpointAccepted.topic,
        outside.WorkspaceTransitioned.topic,
        outside.WorkspaceRebaselined.topic,
        outside.WorkspaceRenewed.topic,
        run.RunClaimed.topic,
    }
)
"""The only topics that may follow a terminal event. SPEC section 7."""


class UnknownEventType(ValueError):
    """A stored event has a type that this version does not know. SPEC section 5."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"unknown event type {topic!r}: it was written by a newer version, or is damaged")
        self.topic = topic


class MalformedEvent(ValueError):
    """A stored event of a known type does not have that type's shape. SPEC section 5."""

    def __init__(self, topic: str, detail: str) -> None:
        super().__init__(f"event of type {topic!r} is malformed: {detail}")
        self.topic = topic
        self.detail = detail


def event_from(fields: dict[str, Any], topic: str) -> Event:
    """Make an event from its decoded fields (without the seal), upcasting older versions in memory.

    Raises:
        UnknownEventType: the topic is not in the catalogue.
        MalformedEvent: the fields do not fit the topic's class.
    """
    while topic in UPCASTS:
        fields = UPCASTS[topic](fields)
        topic = fields.pop("type")
    cls = EVENTS.get(topic)
    if cls is None:
        raise UnknownEventType(topic)
    try:
        event: Event = cls.__pydantic_validator__.validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise MalformedEvent(topic, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return event


__all__ = [
    "AFTER_TERMINAL",
    "EVENTS",
    "RUN_EVENTS",
    "UPCASTS",
    "Event",
    "MalformedEvent",
    "RunEvent",
    "SessionEvent",
    "UnknownEventType",
    "event_from",
]
