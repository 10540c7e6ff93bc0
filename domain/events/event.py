"""What every stored fact has in common: a stable topic, its identity spine and its time. SPEC section 5."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints

from ..identifiers import (
    EventIdField,
    ExecutionIdentity,
    InvocationIdField,
    RunIdField,
    SessionIdField,
    TurnIdField,
    run_stream,
    session_stream,
)

Timestamp: TypeAlias = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")]
"""UTC with microseconds, as text of one fixed form, so that decoding and encoding give the same bytes."""

Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in lower-case hex."""

ToolName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A tool's name as the provider knows it: bounded, no control characters (field report r3-024)."""

Json: TypeAlias = JsonValue


_LAST: Timestamp = "9999-12-31T23:59:59.999999Z"


def after(at: Timestamp, seconds: int) -> Timestamp:
    """The time `seconds` (0 or more) later, or the last one that can be written. Times compare as their texts do."""
    try:
        later = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST
    return f"{later:%Y-%m-%dT%H:%M:%S.%f}Z"


def seconds_between(earlier: Timestamp, later: Timestamp) -> int:
    """Whole seconds from one time to another, rounded down; negative where the second is before the first."""
    return int((datetime.fromisoformat(later) - datetime.fromisoformat(earlier)) // timedelta(seconds=1))


class Value(BaseModel):
    """A frozen part of an event that has no identity of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Event(BaseModel):
    """A fact before it is sealed: what a decision proposes. Sequence and digests are added by `sealing`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    topic: ClassVar[str] = ""
    model_visible: ClassVar[bool] = False

    event_id: EventIdField
    session_id: SessionIdField
    occurred_at: Timestamp

    @property
    def stream(self) -> str:
        """The stream that this fact belongs to."""
        return session_stream(self.session_id)


class SessionEvent(Event):
    """A fact of a session's own stream."""


class RunEvent(Event):
    """A fact of a run's stream; it carries the whole identity spine. SPEC section 4."""

    run_id: RunIdField
    turn_id: TurnIdField
    invocation_id: InvocationIdField

    @property
    def stream(self) -> str:
        """The stream that this fact belongs to."""
        return run_stream(self.run_id)

    @property
    def identity(self) -> ExecutionIdentity:
        """The (session, run, turn, invocation) that this fact belongs to."""
        return ExecutionIdentity(self.session_id, self.run_id, self.turn_id, self.invocation_id)
