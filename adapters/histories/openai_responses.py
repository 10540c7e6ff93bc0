"""From a provider-neutral history to input items of OpenAI's responses API, and the shapes of its items.

SPEC section 12, F10. Reasoning goes back as the item that it was, byte for byte; reasoning of anybody else is left out.
Ids of items go back under `KEPT` in the options, so they come and go with the reasoning that they belong to. Results
carry no error flag: an error says so in its text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...domain.events.event import Json
from ...domain.own_copies import own
from ...domain.replay.items import CallItem, MessageItem, PartItem, ResultItem, ThinkingItem
from ...domain.replay.legality import Message, steps_of
from ...ports.model_step import ThinkingBlock
from .call_ids import SentCallIds
from .kept import kept_beside, kept_in
from .spelling import AnyHistory, arguments_text, attachment_note, flagged_result_text, items_in
from .tool_names import SentToolNames

if TYPE_CHECKING:
    from openai.types.responses import ResponseInputItemParam

    from ...domain.events.model import Attachment

KEPT: Final = "responses_item"
"""The member of provider options that holds what only this API understands: all of an item, or what is beside it."""
TOOL_NAME_CHARS_MAX: Final = 64
"""The API refuses longer names of tools, and characters other than letters, digits, `_` and `-`."""
CALL_ID_CHARS_MAX: Final = 64
"""The API refuses longer ids of tool calls."""
CUSTOM_CALL: Final = "custom_tool_call"
"""A call whose input is a text and no JSON; here its arguments are `{"input": text}`."""


def to_openai_responses(history: AnyHistory, *, offered: Collection[str] = ()) -> list[ResponseInputItemParam]:
    """Make the items; the system prompt goes into the parameter `instructions`.

    Args:
        history: a replay, or legal items; the same ones always make the same items.
        offered: names of the tools that the endpoint is offered; other names are spelled as the API takes them.
    """
    items: list[Any] = []
    ids = SentCallIds(CALL_ID_CHARS_MAX)
    names = SentToolNames(TOOL_NAME_CHARS_MAX, offered)
    for step in steps_of(items_in(history)):
        if isinstance(step, Message):
            items.append(_user_message(step.item))
            continue
        items += (made for part in step.parts for made in _part(part, ids, names))
        custom = {call.call_id for call in step.calls if _is_custom(call)}
        items += (_output(result, ids, custom=result.call_id in custom) for result in step.results)
    return items


def thought_of(item: Mapping[str, Json]) -> ThinkingBlock:
    """The reasoning of an item, which goes back as it was; its summary is for people."""
    shown = (block for name in ("summary", "content") if isinstance(blocks := item.get(name), list) for block in blocks)
    texts = (block.get("text") for block in shown if isinstance(block, dict))
    return ThinkingBlock(
        "\n".join(text for text in texts if isinstance(text, str)),
        provider_options=dict(item),
    )


def kept_of_message(item: Mapping[str, Json]) -> Json:
    """The options that keep what a message of the model has beside its text: its id, and content that is not plain."""
    content = item.get("content")
    return kept_beside(KEPT, item, "type", "role", *(("content",) if _is_plain(content) else ()))


def kept_of_call(item: Mapping[str, Json]) -> Json:
    """The options that keep what a call has beside its own id, name and arguments; a custom call keeps its type."""
    known = () if item.get("type") == CUSTOM_CALL else ("type",)
    return kept_beside(KEPT, item, "call_id", "name", "arguments", "input", *known)


def _is_plain(content: Json) -> bool:
    """Whether content is told by its text alone."""
    if isinstance(content, str):
        return True
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    said = {name for name, value in block.items() if value} if isinstance(block, dict) else set()
    return isinstance(block, dict) and block.get("type") == "output_text" and said <= {"type", "text"}


def _user_message(item: MessageItem) -> dict[str, Json]:
    content: Json = item.text
    if item.kind == "user" and item.attachments:
        texts: list[Json] = [{"type": "input_text", "text": item.text}] if item.text else []
        content = [*texts, *map(_attachment, item.attachments)]
    return {"type": "message", "role": "user", "content": content}


def _attachment(attachment: Attachment) -> Json:
    uri = attachment.uri or ""
    remote, inline = uri.startswith(("https://", "http://")), uri.startswith("data:")
    if attachment.media_type.startswith("image/") and (remote or inline):
        return {"type": "input_image", "image_url": uri, "detail": "auto"}
    if attachment.media_type == "application/pdf" and remote:
        return {"type": "input_file", "file_url": uri}
    if attachment.media_type == "application/pdf" and inline:
        return {"type": "input_file", "filename": attachment.name, "file_data": uri}
    return {"type": "input_text", "text": attachment_note(attachment)}


def _part(part: PartItem, ids: SentCallIds, names: SentToolNames) -> Iterator[dict[str, Json]]:
    if isinstance(part, CallItem):
        yield _call(part, ids, names)
    elif isinstance(part, ThinkingItem):
        if isinstance(part.provider_options, dict) and part.provider_options.get("type") == "reasoning":
            yield own(part.provider_options)
    else:
        kept = kept_in(KEPT, part.provider_options)
        if "type" in kept and not part.text:  # an item of another kind, which stands for itself
            yield kept
        elif part.text or "id" in kept:  # reasoning must be followed by the message that followed it, however empty
            yield _message(part.text, kept)


def _message(text: str, kept: dict[str, Json]) -> dict[str, Json]:
    said: dict[str, Json] = {"type": "message", "role": "assistant", "content": text}
    if "id" in kept:  # a message that the API knows by its id is given back in the API's own form
        said |= {"content": [{"type": "output_text", "text": text, "annotations": []}], "status": "completed"}
    return {**said, **kept}


def _call(item: CallItem, ids: SentCallIds, names: SentToolNames) -> dict[str, Json]:
    kept = kept_in(KEPT, item.provider_options)
    made: dict[str, Json] = {**kept, "call_id": ids.call(item.call_id), "name": names.of(item.tool_name)}
    if _is_custom(item) and isinstance(item.args, dict):
        return {**made, "type": CUSTOM_CALL, "input": item.args["input"]}
    return {**made, "type": "function_call", "arguments": arguments_text(item)}


def _output(item: ResultItem, ids: SentCallIds, *, custom: bool) -> dict[str, Json]:
    kind = f"{CUSTOM_CALL}_output" if custom else "function_call_output"
    return {"type": kind, "call_id": ids.result(item.call_id), "output": flagged_result_text(item)}


def _is_custom(item: CallItem) -> bool:
    args = item.args
    is_text = isinstance(args, dict) and args.keys() == {"input"} and isinstance(args["input"], str)
    return is_text and kept_in(KEPT, item.provider_options).get("type") == CUSTOM_CALL
