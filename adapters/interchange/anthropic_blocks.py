"""The content blocks of Anthropic's messages, which Claude Code's lines hold, too."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from ...ports.history_format import FindingCode, Place
from ..histories.anthropic import kept_of_block, thought_of
from .contents import (
    Content,
    Members,
    attachment_of,
    content_of,
    is_file,
    members_of,
    tell_unknown,
    text_block,
    text_in,
)
from .lines import Reading
from .parts import CallMade, ModelSaid, ModelThought, Part, ResultGiven, UserSaid

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_RESULT = "tool_result"


def model_blocks(
    content: JsonValue | None, place: Place, step: str, at: str | None, reading: Reading
) -> Iterator[Part]:
    """The parts of a message in the assistant's role."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if content is not None and not isinstance(content, list):
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "its content is neither a text nor a list")
        return
    for number, block in enumerate(content or []):
        here = place._replace(path=f"{place.path}.content[{number}]".lstrip("."))
        members = members_of(block)
        kind = text_in(members, "type")
        if (text := text_block(block)) is not None:
            if text:
                yield ModelSaid(here, step, text, kept_of_block(members, "text"), at)
        elif kind == "refusal":
            yield ModelSaid(here, step, text_in(members, "refusal") or "", at=at)
        elif (thought := thought_of(members)) is not None:
            yield ModelThought(here, step, thought.text, thought.signature, thought.provider_options, at)
        elif kind in _CALLS:
            yield from _call(members, kind, here, step, at, reading)
        elif kind is not None and kind.endswith(_RESULT):  # the provider's own tools answer in the model's role
            yield from _result(members, here, at, reading)
        else:
            tell_unknown(block, here, reading)


def user_blocks(content: JsonValue | None, place: Place, at: str | None, reading: Reading) -> Iterator[Part]:
    """The parts of a message in the user's role: answers to calls, and whatever else it says as one message."""
    if not isinstance(content, list):
        said = content_of(content, place, reading)
        if said is not None:
            yield UserSaid(place, said.text, said.attachments, at=at)
        return
    said_here: list[Content] = []
    answers = 0
    for number, block in enumerate(content):
        here = place._replace(path=f"{place.path}.content[{number}]".lstrip("."))
        members = members_of(block)
        if (text_in(members, "type") or "").endswith(_RESULT):
            answers += 1
            yield from _result(members, here, at, reading)
        elif (text := text_block(block)) is not None:
            said_here.append(Content(text))
        elif is_file(block):
            said_here.append(Content("", (attachment_of(members, here, reading),)))
        else:
            tell_unknown(block, here, reading)
    if said_here:
        text = "\n".join(said.text for said in said_here if said.text)
        attachments = tuple(one for said in said_here for one in said.attachments)
        yield UserSaid(place, text, attachments, with_results=answers > 0, at=at)


def _call(members: Members, kind: str, place: Place, step: str, at: str | None, reading: Reading) -> Iterator[CallMade]:
    name = text_in(members, "name")
    if name is None:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a call without a name")
        return
    options = kept_of_block(members, "id", "name", "input")
    if kind != "tool_use":
        options = {key: value for key, value in members.items() if key not in {"id", "name", "input"}}
    args = members.get("input")
    if args is None:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a call without arguments")
    yield CallMade(place, step, text_in(members, "id") or "", name, args, args is None, options, at)


def _result(members: Members, place: Place, at: str | None, reading: Reading) -> Iterator[ResultGiven]:
    call_id = text_in(members, "tool_use_id")
    if call_id is None:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "an answer that names no call")
        return
    if not isinstance(members.get("is_error"), bool | None):
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "is_error is neither true nor false")
    result = members.get("content")
    yield ResultGiven(place, call_id, "" if result is None else result, members.get("is_error") is True, at=at)
