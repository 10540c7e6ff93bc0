"""From a response of OpenAI's responses API, whole, to one finished step, or to a typed failure. SPEC F5."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ...domain.events.event import Json
from ...domain.events.model import Usage
from ...ports.model_step import Block, CallBlock, StepFinished, TextBlock
from ...ports.provider_failures import ProviderFailed, ProviderStreamIncomplete
from ..histories.openai_responses import CUSTOM_CALL, KEPT, kept_of_call, kept_of_message, thought_of
from .streamed_text import tool_name, whole

_OF_THE_PROVIDER: Final = frozenset(
    {
        "code_interpreter_call",
        "compaction",
        "file_search_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "web_search_call",
    }
)
"""Items of work that the provider did itself; they are kept whole."""
_OPEN: Final = frozenset({"queued", "in_progress", "cancelled"})


def step_of_response(response: Mapping[str, Any]) -> StepFinished:
    """Give the step of a response.

    Raises:
        ProviderStreamIncomplete: it has not ended.
        ProviderFailed: the provider says that it failed, or what it holds cannot be recorded.
    """
    status = response.get("status")
    if not isinstance(status, str) or status in _OPEN:
        raise ProviderStreamIncomplete(f"the provider's response is {str(status)[:40]!r}")
    if status == "failed":
        error = response.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        raise ProviderFailed(f"the provider's response failed: {str(said)[:500]}")
    output = response.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    details = response.get("incomplete_details")
    why = details.get("reason") if isinstance(details, dict) else None
    usage, model, response_id = response.get("usage"), response.get("model"), response.get("id")
    return StepFinished(
        blocks=tuple(_block_of(item) for item in items),
        finish_reason=why if isinstance(why, str) and why else status,
        model=model if isinstance(model, str) else None,
        provider_response_id=response_id if isinstance(response_id, str) else None,
        usage=None if not isinstance(usage, dict) else _tokens(usage),
    )


def _tokens(usage: Mapping[str, Any]) -> Usage:
    def count(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and value >= 0 else 0

    return Usage(input_tokens=count("input_tokens"), output_tokens=count("output_tokens"))


def _block_of(item: dict[str, Json]) -> Block:
    kind = item.get("type")
    match kind:
        case "message":
            return TextBlock(whole(_text_of(item.get("content"))), kept_of_message(item))
        case "reasoning":
            return thought_of(item)
        case "function_call" | "custom_tool_call":
            return _call_of(item)
        case str() if kind in _OF_THE_PROVIDER:
            return TextBlock("", {KEPT: item})
    raise ProviderFailed(f"the provider sent an item of type {str(kind)[:80]!r}, which is not known here")


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = (block.get("text", block.get("refusal")) for block in blocks)
    return "".join(text for text in texts if isinstance(text, str))


def _call_of(item: dict[str, Json]) -> CallBlock:
    """A call; one that the response broke off in is not complete, and its arguments are no strict JSON."""
    name, call_id = tool_name(item.get("name")), item.get("call_id")
    spelled = item.get("arguments")
    text = spelled if isinstance(spelled, str) else ""
    if item.get("type") == CUSTOM_CALL:
        text = json.dumps({"input": item.get("input")}, ensure_ascii=False)
    if item.get("status") == "incomplete" and text.endswith("}"):
        text = text[:-1]
    return CallBlock(call_id if isinstance(call_id, str) else None, name, whole(text), kept_of_call(item))
