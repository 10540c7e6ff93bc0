"""A run's facts for people: one short entry each, with previews of bounded length. SPEC F13, F14, R15."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..domain import canonical
from ..domain.events.event import Event, Json
from ..domain.events.model import HostMessage, ModelText, ModelThinking, UserMessage
from ..domain.events.run import ContinuationStarted, RunClaimed, RunOpened
from ..domain.events.tool import ToolCalled, ToolDispatched, ToolResponded
from ..domain.sealing import SealedEvent

PREVIEW_CHARS = 200
FULL_CHARS = 16_000
_CONTENT = frozenset(
    {"text", "args", "args_text", "provider_text", "provider_options", "result", "signature", "evidence", "parameters"}
)
_SPINE = frozenset({"event_id", "session_id", "occurred_at", "run_id", "turn_id", "invocation_id"})
_LONG = frozenset({"profile", "context", "segments", "target", "source", "contract", "attachments", "changed_paths"})
_LEFT_OUT = _SPINE | _CONTENT | _LONG
_NOTHING: tuple[Json, ...] = (None, [], {})


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of something long; `chars` is how long it is."""

    text: str
    chars: int

    @property
    def cut(self) -> bool:
        """True when it is only the beginning."""
        return self.chars > len(self.text)


@dataclass(frozen=True, slots=True)
class TimelineFact:
    """One event.

    Attributes:
        facts: its own short members: ids, names, codes and numbers, never content.
        content: previews of texts, and of arguments and results only where everything was asked for.
        sizes: characters of the content that is not shown, by name.
    """

    sequence: int
    occurred_at: str
    topic: str
    event_id: str
    facts: Mapping[str, Json]
    content: Mapping[str, Preview]
    sizes: Mapping[str, int]


def fact_of(sealed: SealedEvent, *, full: bool) -> TimelineFact:
    """Make the entry of an event.

    Args:
        full: show arguments, results and long texts, too, up to `FULL_CHARS` each.
    """
    event = sealed.event
    fields = event.model_dump(mode="json")
    facts = {name: value for name, value in fields.items() if name not in _LEFT_OUT and value not in _NOTHING}
    content: dict[str, Preview] = {}
    sizes: dict[str, int] = {}
    for name, value in _content_of(event).items():
        text = value if isinstance(value, str) else canonical.encode(value).decode()
        if full or name == "text":
            content[name] = Preview(text[: FULL_CHARS if full else PREVIEW_CHARS], len(text))
        else:
            sizes[name] = len(text)
    facts |= _of_long(event)
    return TimelineFact(sealed.sequence, event.occurred_at, event.topic, event.event_id, facts, content, sizes)


def _content_of(event: Event) -> Mapping[str, Json]:
    """What of an event was said, asked or answered."""
    match event:
        case UserMessage() | HostMessage() | ModelText() | ModelThinking():
            return {"text": event.text}
        case ToolCalled():
            return {"args": event.args} if event.args_text is None else {"args_text": event.args_text}
        case ToolResponded():
            return {"result": event.result}
        case _:
            return {}


def _of_long(event: Event) -> Mapping[str, Json]:
    """The few members of a long part that people look for."""
    match event:
        case RunOpened() | ContinuationStarted():
            return {"provider": event.profile.provider, "model": event.profile.model}
        case RunClaimed():
            return {"target_run_id": event.target.run_id}
        case ToolDispatched():
            return {"mode": event.contract.mode.value}
        case _:
            return {}
