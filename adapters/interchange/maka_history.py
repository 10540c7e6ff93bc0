"""What a foreign ledger shows the model, as our events: enough to make and judge a history of it. SPEC section 19.

Only what a history is made of is here: messages, the parts of model steps, responses. The facts that decide whether a
history may be made at all are `maka_facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError

from ...domain.events.event import RunEvent
from ...domain.events.model import ModelText, ModelThinking, UserMessage
from ...domain.events.tool import Effect, ToolCalled, ToolResponded
from ...domain.identifiers import StepId
from . import maka_json
from .values import time_of

_PARTS = (ModelText, ModelThinking, ToolCalled)
_ROLES = {
    "text": ("user", "model"),
    "thinking": ("model",),
    "function_call": ("model",),
    "function_response": ("tool",),
}


class MakaHistory(NamedTuple):
    """The visible part of a ledger.

    Attributes:
        events: in order. Where the original names no step, one is made for each stretch of the model that nothing
            shown and no answer interrupts.
        refused: ids of envelopes that no history can show as they stand, such as a call in the user's role.
    """

    events: tuple[RunEvent, ...]
    refused: tuple[str, ...]


def history_of(envelopes: Iterable[JsonValue]) -> MakaHistory:
    """Read what a ledger shows the model; partial, hidden, system and error facts show nothing."""
    events: list[RunEvent] = []
    refused: list[str] = []
    called: set[str] = set()
    stretches = Stretches()
    for envelope in envelopes:
        if not isinstance(envelope, dict):
            continue
        if not is_shown(envelope):
            stretches.pass_over(envelope)
            continue
        try:
            event = stretches.shown(envelope)
        except (ValidationError, maka_json.MakaJsonError, LookupError, TypeError):
            refused.append(str(envelope.get("id")))
            continue
        if isinstance(event, ToolCalled):
            called.add(event.call_id)
        if isinstance(event, ToolResponded) and event.call_id not in called:
            refused.append(event.event_id)  # its call is hidden, and an answer without its call is no history
        else:
            events.append(event)
    return MakaHistory(tuple(events), tuple(refused))


class Stretches:
    """Names model steps where the original names none: a stretch ends at what else is shown, and at any answer."""

    def __init__(self) -> None:
        self._number = 0
        self._goes_on = False

    def pass_over(self, envelope: Mapping[str, JsonValue]) -> None:
        """Look at an envelope that shows nothing: an answer tells all the same that the model was asked again."""
        content = envelope.get("content")
        self._goes_on = self._goes_on and not (isinstance(content, dict) and content.get("kind") == "function_response")

    def shown(self, envelope: Mapping[str, Any]) -> RunEvent:
        """What an envelope shows. Raises as `shown_event`."""
        if not self._goes_on:
            self._number += 1
        event = shown_event(envelope, f"stretch-{self._number}")
        self._goes_on = isinstance(event, _PARTS)
        return event


def is_shown(envelope: Mapping[str, JsonValue]) -> bool:
    """Whether an envelope shows the model anything: partial, hidden, system and error facts do not."""
    content = envelope.get("content")
    return (
        isinstance(content, dict)
        and content.get("kind") != "error"
        and envelope.get("partial") is not True
        and envelope.get("role") != "system"
        and envelope.get("modelVisibility") != "hidden"
    )


def shown_event(envelope: Mapping[str, Any], unnamed_step: str) -> RunEvent:
    """What an envelope shows the model.

    Args:
        envelope: shows something.
        unnamed_step: the model step where the original names none.

    Raises:
        ValidationError, MakaJsonError, LookupError, TypeError: no event of ours can say it.
    """
    content, role, refs = envelope["content"], envelope["role"], envelope.get("refs")
    refs = refs if isinstance(refs, dict) else {}
    kind = content["kind"]
    if role not in _ROLES[kind]:
        raise LookupError(f"{kind} in the role {role}")
    fields = spine_of(envelope)
    match kind:
        case "text" if role == "user":
            return UserMessage(**fields, text=content["text"], steering=content.get("steering") is True)
        case "text":
            step = refs.get("providerEventId") or refs.get("storedMessageId") or unnamed_step
            return ModelText(**fields, step_id=StepId(step), text=content["text"])
        case "thinking":
            return ModelThinking(
                **fields,
                step_id=StepId(refs.get("providerEventId") or unnamed_step),
                text=content["text"],
                signature=content.get("signature"),
                provider_options=content.get("providerOptions"),
            )
        case "function_call":
            return ToolCalled(
                **fields,
                step_id=StepId(refs.get("stepId") or unnamed_step),
                call_id=content["id"],
                tool_name=content["name"],
                args=as_stored(content.get("args")),
                provider_options=content.get("providerOptions"),
            )
        case _:
            failed = content.get("isError") is True
            return ToolResponded(
                **fields,
                call_id=content["id"],
                tool_name=content["name"],
                result=as_stored(content.get("result")),
                is_error=failed,
                effect=Effect.UNKNOWN if failed else Effect.DONE,
            )


def spine_of(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that every event of ours has.

    Raises:
        LookupError: one is missing, or no such time can be.
    """
    identity = {f"{name}_id": envelope[f"{name}Id"] for name in ("session", "run", "turn", "invocation")}
    return {"event_id": envelope["id"], **identity, "occurred_at": _time_of(envelope.get("ts"))}


def as_stored(value: JsonValue) -> JsonValue:
    """The value with every number as the double that the original took it for."""
    return maka_json.parse(maka_json.canonical(value))


def _time_of(milliseconds: object) -> str:
    try:
        moment = time_of(milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0)
    except OverflowError:
        moment = None
    if moment is None:
        raise LookupError("no such time")
    return moment
