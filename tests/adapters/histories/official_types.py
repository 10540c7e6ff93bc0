"""What the official clients' own types say of messages, down to the last block."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from anthropic.types import MessageParam, ToolParam
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from safepoint.adapters.histories.anthropic import to_anthropic
from safepoint.adapters.histories.openai_chat import to_openai_chat
from safepoint.adapters.histories.openai_responses import to_openai_responses
from safepoint.domain.replay.items import Item

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about names in the clients' types
    CHAT = TypeAdapter(list[ChatCompletionMessageParam])
    CHAT_TOOLS = TypeAdapter(list[ChatCompletionToolParam])
    RESPONSES = TypeAdapter(list[ResponseInputItemParam])
    ANTHROPIC = TypeAdapter(list[MessageParam])
    ANTHROPIC_TOOLS = TypeAdapter(list[ToolParam])


def accepted(messages: list[Any], types: TypeAdapter[Any]) -> list[Any]:
    """The messages, which the client's own types accept."""
    _read_whole(types.validate_python(messages, strict=True))
    return messages


def _read_whole(value: Any) -> None:
    """Iterables in these types are validated while they are read."""
    if isinstance(value, Mapping):
        for member in value.values():
            _read_whole(member)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for member in value:
            _read_whole(member)


def chat_of(*history: Item) -> list[Any]:
    """OpenAI chat messages, accepted."""
    return accepted(list(to_openai_chat(history)), CHAT)


def responses_of(*history: Item) -> list[Any]:
    """Items of OpenAI's responses API, accepted."""
    return accepted(list(to_openai_responses(history)), RESPONSES)


def anthropic_of(*history: Item) -> list[Any]:
    """Anthropic messages, accepted."""
    return accepted(list(to_anthropic(history)), ANTHROPIC)


MADE: Mapping[str, Callable[..., list[Any]]] = {
    "openai-chat": chat_of,
    "openai-responses": responses_of,
    "anthropic": anthropic_of,
}
"""How messages are made, by the name of their format."""
