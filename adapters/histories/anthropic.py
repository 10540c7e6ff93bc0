"""From a provider-neutral history to Anthropic messages, and the shapes of its blocks. SPEC section 12, F10.

Roles alternate, and the answers to a step's calls open the message that follows it. Thinking goes back byte for byte
with its signature, redacted thinking as the block that it was; without either this API takes none, so it is left out.
What else only this provider understands of a block stands under `KEPT` in its options.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...domain.events.event import Json
from ...domain.own_copies import own
from ...domain.replay.items import CallItem, MessageItem, PartItem, ResultItem, TextItem, ThinkingItem
from ...domain.replay.legality import Message, ModelStep, steps_of
from ...ports.model_provider import OfferedTool
from ...ports.model_step import ThinkingBlock
from .call_ids import SentCallIds
from .kept import kept_beside, kept_in
from .spelling import NOT_AN_OBJECT, AnyHistory, arguments_value, attachment_note, items_in, result_text
from .tool_names import SentToolNames

if TYPE_CHECKING:
    from anthropic.types import MessageParam, ToolParam

    from ...domain.events.model import Attachment

KEPT: Final = "anthropic_block"
"""The member of provider options that holds what only this API understands: all of a block, or what is beside it."""
TOOL_NAME_CHARS_MAX: Final = 128
"""The API refuses longer names of tools, and characters other than letters, digits, `_` and `-`."""
CALL_ID_CHARS_MAX: Final = 64
CALL_ID: Final = "[a-zA-Z0-9_-]+"
"""The API refuses ids of tool calls with any other character."""
BLANK: Final = "[blank message]"
"""Stands for a message of nothing but spaces, which the API refuses."""
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_ANY_IMAGE: Final = "image/*"
"""Of an image that is known by its address alone."""
_RESULT_BLOCKS: Final = {"text": "text", "image": "source", "document": "source"}
"""Blocks that a tool's result may consist of, each with the member that it must have."""


def to_anthropic(history: AnyHistory, *, offered: Collection[str] = ()) -> list[MessageParam]:
    """Make the messages; the system prompt is a parameter of its own in this API.

    Args:
        history: a replay, or legal items; the same ones always make the same messages.
        offered: names of the tools that the endpoint is offered; other names are spelled as the API takes them.
    """
    messages: list[Any] = []
    ids = SentCallIds(CALL_ID_CHARS_MAX, CALL_ID)
    names = SentToolNames(TOOL_NAME_CHARS_MAX, offered)
    for step in steps_of(items_in(history)):
        if isinstance(step, Message):
            _say(messages, "user", _user_blocks(step.item))
        else:
            _say(messages, "assistant", _step_blocks(step, ids, names))
            _say(messages, "user", [_result_block(result, ids) for result in step.results])
    return messages


def goes_on_without_thinking(messages: Sequence[MessageParam]) -> bool:
    """Whether the last step waits for its results and does not begin with thinking.

    Such are steps of another model or account, whose thinking is not sent; the API refuses them where thinking is
    `enabled`.
    """
    if len(messages) < 2 or not _is_first(messages[-1], {"tool_result"}):
        return False
    return not _is_first(messages[-2], _THOUGHTS)


def anthropic_tools(tools: Iterable[OfferedTool]) -> list[ToolParam]:
    """Describe the tools."""
    described: list[Any] = [
        {"name": tool.name, "description": tool.description, "input_schema": {"type": "object", **tool.schema}}
        for tool in tools
    ]
    return described


def thought_of(block: Mapping[str, Json]) -> ThinkingBlock | None:
    """A block's reasoning, byte for byte; None where it is none."""
    if block.get("type") == "redacted_thinking":
        return ThinkingBlock("", provider_options=dict(block))
    if block.get("type") != "thinking":
        return None
    text, signature = block.get("thinking"), block.get("signature")
    return ThinkingBlock(
        text if isinstance(text, str) else "",
        signature if isinstance(signature, str) else None,
        kept_of_block(block, "thinking", "signature"),
    )


def kept_of_block(block: Mapping[str, Json], *known: str) -> Json:
    """The options that keep what a text or call has beside the members that are known here, such as its citations.

    Marks of caching belong to the request that they were made for.
    """
    return kept_beside(KEPT, block, "type", "cache_control", *known)


def _is_first(message: MessageParam, kinds: Collection[str]) -> bool:
    content: Any = message["content"]
    return isinstance(content, list) and bool(content) and content[0]["type"] in kinds


def _say(messages: list[Any], role: str, blocks: list[dict[str, Json]]) -> None:
    """Add blocks; what one role says in a row is one message."""
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": blocks})


def _user_blocks(item: MessageItem) -> list[dict[str, Json]]:
    blocks: list[dict[str, Json]] = []
    if item.text:
        blocks.append({"type": "text", "text": item.text if item.text.strip() else BLANK})
    if item.kind == "user":
        blocks += map(_attachment_block, item.attachments)
    return blocks


def _attachment_block(attachment: Attachment) -> dict[str, Json]:
    kind = "image" if attachment.media_type in {*_IMAGES, _ANY_IMAGE} else "document"
    uri = attachment.uri or ""
    if kind == "image" or attachment.media_type == "application/pdf":
        head, _, data = uri.partition(";base64,")
        if uri.startswith("https://"):
            return {"type": kind, "source": {"type": "url", "url": uri}}
        if head == f"data:{attachment.media_type}" and data:
            source: Json = {"type": "base64", "media_type": attachment.media_type, "data": data}
            return {"type": kind, "source": source}
    return {"type": "text", "text": attachment_note(attachment)}


def _step_blocks(step: ModelStep, ids: SentCallIds, names: SentToolNames) -> list[dict[str, Json]]:
    blocks = [block for part in step.parts if (block := _part_block(part, ids, names)) is not None]
    while blocks and blocks[-1]["type"] in _THOUGHTS:  # what followed it is nothing that the API takes
        blocks.pop()
    return blocks


def _part_block(part: PartItem, ids: SentCallIds, names: SentToolNames) -> dict[str, Json] | None:
    if isinstance(part, CallItem):
        return _call_block(part, ids, names)
    if isinstance(part, ThinkingItem):
        return _thinking_block(part)
    return _text_block(part)


def _thinking_block(item: ThinkingItem) -> dict[str, Json] | None:
    options = item.provider_options
    if isinstance(options, dict) and options.get("type") == "redacted_thinking":
        return own(options)
    if item.signature is None:
        return None
    return {**kept_in(KEPT, options), "type": "thinking", "thinking": item.text, "signature": item.signature}


def _text_block(item: TextItem) -> dict[str, Json] | None:
    kept = kept_in(KEPT, item.provider_options)
    if not item.text.strip():  # the API refuses blank text; a block that has a type of its own stands for itself
        return kept if "type" in kept else None
    return {**kept, "type": "text", "text": item.text}


def _call_block(item: CallItem, ids: SentCallIds, names: SentToolNames) -> dict[str, Json]:
    args = own(arguments_value(item))
    return {
        **kept_in(KEPT, item.provider_options),
        "type": "tool_use",
        "id": ids.call(item.call_id),
        "name": names.of(item.tool_name),
        "input": args if isinstance(args, dict) else {NOT_AN_OBJECT: args},
    }


def _result_block(item: ResultItem, ids: SentCallIds) -> dict[str, Json]:
    content: Json = own(item.result) if _is_content(item.result) else result_text(item.result)
    block: dict[str, Json] = {"type": "tool_result", "tool_use_id": ids.result(item.call_id), "content": content}
    if item.is_error:
        # The API refuses an error that says nothing.
        block |= {"is_error": True, "content": content or "Error"}
    return block


def _is_content(result: Json) -> bool:
    """Whether a result consists of blocks that the API takes as they are."""
    return isinstance(result, list) and bool(result) and all(map(_is_result_block, result))


def _is_result_block(block: Json) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    needed = _RESULT_BLOCKS.get(kind) if isinstance(kind, str) else None
    if needed is None:
        return False
    value = block.get(needed)
    return isinstance(value, str) and bool(value.strip()) if needed == "text" else isinstance(value, dict)
