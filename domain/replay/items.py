"""What a provider is shown, in no provider's format: items of a history, in order. SPEC section 12.

Named tuples and not models: a history of 100,000 events is made and digested whenever a run is planned.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ..events.event import Json
from ..events.model import Attachment
from ..identifiers import EventId, StepId, ToolCallId


class UserItem(NamedTuple):
    """What the user said."""

    event_id: EventId
    text: str
    attachments: tuple[Attachment, ...] = ()
    steering: bool = False
    kind: Literal["user"] = "user"


class HostItem(NamedTuple):
    """What the host says in the user's role."""

    event_id: EventId
    text: str
    sentence_id: str
    kind: Literal["host"] = "host"


class TextItem(NamedTuple):
    """Text of a model step."""

    event_id: EventId
    step_id: StepId
    text: str
    provider_options: Json = None
    kind: Literal["text"] = "text"


class ThinkingItem(NamedTuple):
    """Reasoning of a model step, byte for byte; it is directly followed by an item of its own step."""

    event_id: EventId
    step_id: StepId
    text: str
    signature: str | None = None
    provider_options: Json = None
    kind: Literal["thinking"] = "thinking"


class CallItem(NamedTuple):
    """A tool call; exactly one of `args` and `args_text` speaks, the text where the provider's was no strict JSON.

    `call_id` is distinct in the whole history; `provider_text` is the provider's own spelling, for that provider only.
    """

    event_id: EventId
    step_id: StepId
    call_id: ToolCallId
    tool_name: str
    args: Json = None
    args_text: str | None = None
    provider_text: str | None = None
    provider_options: Json = None
    kind: Literal["call"] = "call"


class ResultItem(NamedTuple):
    """The answer to a call, with the call's step.

    `computed` names the sentence of an answer that is stored nowhere; `event_id` is then the fact that it speaks of.
    """

    event_id: EventId
    step_id: StepId
    call_id: ToolCallId
    tool_name: str
    result: Json
    is_error: bool
    computed: str | None = None
    kind: Literal["result"] = "result"


MessageItem: TypeAlias = UserItem | HostItem
PartItem: TypeAlias = TextItem | ThinkingItem | CallItem
Item: TypeAlias = MessageItem | PartItem | ResultItem


def fields_of(item: Item) -> dict[str, Json]:
    """The JSON object of an item, every field explicit: what is digested."""
    fields: dict[str, Json] = item._asdict()
    if type(item) is UserItem:
        fields["attachments"] = [attachment.model_dump(mode="json") for attachment in item.attachments]
    return fields


def open_values(item: Item) -> tuple[Json, ...]:
    """What an item holds that may be any JSON; everything else in it is text, a flag, or nothing."""
    if type(item) is CallItem:
        return (item.args, item.provider_options)
    if type(item) is ResultItem:
        return (item.result,)
    if type(item) is TextItem or type(item) is ThinkingItem:
        return (item.provider_options,)
    return ()
