"""From a provider-neutral history to the messages of the OpenAI chat API. SPEC section 12.

This API has no place for reasoning: it is left out, whole. Results carry no error flag: an error says so in its text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from ...domain.replay.items import CallItem, MessageItem, ResultItem, TextItem
from ...domain.replay.legality import Message, ModelStep, steps_of
from ...ports.model_provider import OfferedTool
from .call_ids import SentCallIds
from .spelling import AnyHistory, arguments_text, attachment_note, flagged_result_text, items_in
from .tool_names import SentToolNames

if TYPE_CHECKING:
    from openai.types.chat import (
        ChatCompletionAssistantMessageParam,
        ChatCompletionContentPartParam,
        ChatCompletionMessageFunctionToolCallParam,
        ChatCompletionMessageParam,
        ChatCompletionToolMessageParam,
        ChatCompletionToolParam,
        ChatCompletionUserMessageParam,
    )

    from ...domain.events.model import Attachment

TOOL_NAME_CHARS_MAX: Final = 64
"""The API refuses longer names of tools, and characters other than letters, digits, `_` and `-`."""
CALL_ID_CHARS_MAX: Final = 40
"""The API refuses longer ids of tool calls."""


def to_openai_chat(
    history: AnyHistory, *, system_prompt: str = "", offered: Collection[str] = ()
) -> list[ChatCompletionMessageParam]:
    """Make the messages: one per user or host message, one per model step, and one per result, in order.

    Args:
        history: a replay, or legal items; the same ones always make the same messages.
        system_prompt: left out when empty.
        offered: names of the tools that the endpoint is offered; other names are spelled as the API takes them.
    """
    messages: list[ChatCompletionMessageParam] = []
    if system_prompt:
        messages.append({"role": "system", "content": system_prompt})
    ids = SentCallIds(CALL_ID_CHARS_MAX)
    names = SentToolNames(TOOL_NAME_CHARS_MAX, offered)
    for step in steps_of(items_in(history)):
        if isinstance(step, Message):
            messages.append(_user_message(step.item))
            continue
        assistant = _assistant_message(step, ids, names)
        if assistant is not None:
            messages.append(assistant)
        messages.extend(_tool_message(result, ids) for result in step.results)
    return messages


def openai_chat_tools(tools: Iterable[OfferedTool]) -> list[ChatCompletionToolParam]:
    """Describe the tools as functions."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
        }
        for tool in tools
    ]


def _user_message(item: MessageItem) -> ChatCompletionUserMessageParam:
    if item.kind == "host" or not item.attachments:
        return {"role": "user", "content": item.text}
    parts: list[ChatCompletionContentPartParam] = [{"type": "text", "text": item.text}] if item.text else []
    return {"role": "user", "content": [*parts, *map(_attachment_part, item.attachments)]}


def _attachment_part(attachment: Attachment) -> ChatCompletionContentPartParam:
    uri = attachment.uri or ""
    if attachment.media_type.startswith("image/") and uri.startswith(("https://", "http://", "data:")):
        return {"type": "image_url", "image_url": {"url": uri}}
    return {"type": "text", "text": attachment_note(attachment)}


def _assistant_message(
    step: ModelStep, ids: SentCallIds, names: SentToolNames
) -> ChatCompletionAssistantMessageParam | None:
    text = "".join(part.text for part in step.parts if isinstance(part, TextItem))
    calls = [_call(call, ids, names) for call in step.calls]
    if not text and not calls:
        return None
    message: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    return message


def _call(item: CallItem, ids: SentCallIds, names: SentToolNames) -> ChatCompletionMessageFunctionToolCallParam:
    return {
        "id": ids.call(item.call_id),
        "type": "function",
        "function": {"name": names.of(item.tool_name), "arguments": arguments_text(item)},
    }


def _tool_message(item: ResultItem, ids: SentCallIds) -> ChatCompletionToolMessageParam:
    return {"role": "tool", "tool_call_id": ids.result(item.call_id), "content": flagged_result_text(item)}
