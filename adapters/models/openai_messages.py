"""From a provider-neutral history to the messages of the OpenAI chat API. SPEC section 12.

This API has no place for reasoning: it is left out, whole. Results carry no error flag: an error says so in its text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ...domain import canonical
from ...domain.replay.items import CallItem, Item, MessageItem, ResultItem, TextItem
from ...domain.replay.legality import Message, ModelStep, steps_of
from ...ports.model_provider import OfferedTool

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

CALL_ID_CHARS_MAX: Final = 40
"""The API refuses longer ids of tool calls."""


def chat_messages(system_prompt: str, history: Iterable[Item]) -> list[ChatCompletionMessageParam]:
    """Make the messages: one per user or host message, one per model step, and one per result, in order.

    Args:
        system_prompt: left out when empty.
        history: legal items; the same ones always make the same messages.
    """
    messages: list[ChatCompletionMessageParam] = []
    if system_prompt:
        messages.append({"role": "system", "content": system_prompt})
    ids = _CallIds()
    for step in steps_of(history):
        if isinstance(step, Message):
            messages.append(_user_message(step.item))
            continue
        assistant = _assistant_message(step, ids)
        if assistant is not None:
            messages.append(assistant)
        messages.extend(_tool_message(result, ids) for result in step.results)
    return messages


def chat_tools(tools: Iterable[OfferedTool]) -> list[ChatCompletionToolParam]:
    """Describe the tools as functions."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
        }
        for tool in tools
    ]


class _CallIds:
    """Ids as they are sent: ours where the API takes it and it was not sent before, else one derived from it."""

    def __init__(self) -> None:
        self._sent: set[str] = set()
        self._latest: dict[str, str] = {}

    def call(self, call_id: str) -> str:
        sent, repeats = call_id, 0
        while not sent or len(sent) > CALL_ID_CHARS_MAX or sent in self._sent:
            sent = "call_" + hashlib.sha256(f"{repeats}:{call_id}".encode()).hexdigest()[:32]
            repeats += 1
        self._sent.add(sent)
        self._latest[call_id] = sent
        return sent

    def result(self, call_id: str) -> str:
        return self._latest[call_id]


def _user_message(item: MessageItem) -> ChatCompletionUserMessageParam:
    if item.kind == "host" or not item.attachments:
        return {"role": "user", "content": item.text}
    parts: list[ChatCompletionContentPartParam] = [{"type": "text", "text": item.text}] if item.text else []
    return {"role": "user", "content": [*parts, *map(_attachment_part, item.attachments)]}


def _attachment_part(attachment: Attachment) -> ChatCompletionContentPartParam:
    uri = attachment.uri or ""
    if attachment.media_type.startswith("image/") and uri.startswith(("https://", "http://", "data:")):
        return {"type": "image_url", "image_url": {"url": uri}}
    return {"type": "text", "text": f"[attached: {attachment.name} ({attachment.media_type}) {uri}".rstrip() + "]"}


def _assistant_message(step: ModelStep, ids: _CallIds) -> ChatCompletionAssistantMessageParam | None:
    text = "".join(part.text for part in step.parts if isinstance(part, TextItem))
    calls = [_call(call, ids) for call in step.calls]
    if not text and not calls:
        return None
    message: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    return message


def _call(item: CallItem, ids: _CallIds) -> ChatCompletionMessageFunctionToolCallParam:
    return {
        "id": ids.call(item.call_id),
        "type": "function",
        "function": {"name": item.tool_name, "arguments": _arguments(item)},
    }


def _arguments(item: CallItem) -> str:
    """Spell the arguments as JSON in any case: servers parse them, and one bad call must not block a session."""
    if item.args_text is not None:
        return canonical.encode({"not_strict_json": item.args_text}).decode()
    return canonical.encode(item.args).decode()


def _tool_message(item: ResultItem, ids: _CallIds) -> ChatCompletionToolMessageParam:
    text = item.result if isinstance(item.result, str) else canonical.encode(item.result).decode()
    content = f"Error: {text}" if item.is_error else text
    return {"role": "tool", "tool_call_id": ids.result(item.call_id), "content": content}
