"""Ids that may be used once in a whole store, by the topic and field that use them. SPEC section 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from .events.event import Event
from .events.run import RunClaimed
from .events.session import RunAdmitted
from .events.tool import ToolDispatched


class IdKind(StrEnum):
    """What an id names; equal text may be used once per kind."""

    EVENT = "event"
    OPERATION = "operation"
    CLAIM = "claim"
    RUN = "run"


class UniqueId(NamedTuple):
    """A use of an id."""

    kind: IdKind
    id: str


FIELDS: Mapping[str, tuple[IdKind, str]] = {
    ToolDispatched.topic: (IdKind.OPERATION, "operation_id"),
    RunClaimed.topic: (IdKind.CLAIM, "claim_id"),
    RunAdmitted.topic: (IdKind.RUN, "run_id"),
}
"""Topic -> which id its events use up, beside their own event id."""


def ids_used_by(event: Event) -> Iterator[UniqueId]:
    """The ids that an event uses up, its own first."""
    yield UniqueId(IdKind.EVENT, event.event_id)
    if event.topic in FIELDS:
        kind, field = FIELDS[event.topic]
        yield UniqueId(kind, getattr(event, field))
