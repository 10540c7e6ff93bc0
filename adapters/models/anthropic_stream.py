"""From the events of a streamed Anthropic message to one finished step, or to a typed failure. SPEC F5.

The events are read with types of our own: the client does not validate what a server sends. Events of unknown kinds
are passed over, as this protocol asks; a block or delta of an unknown kind fails, because what it says would be lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import BaseModel, Field, JsonValue, ValidationError

from ...domain.events.model import Usage
from ...ports.model_step import Block, CallBlock, StepFinished, TextBlock, TextDelta, ThinkingDelta
from ...ports.provider_failures import ProviderFailed, ProviderStreamIncomplete
from ..histories.anthropic import KEPT, kept_of_block, thought_of
from .streamed_text import AnswerSize, shown, tool_name, whole

_CUT_SHORT: Final = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
_OF_THE_PROVIDER: Final = frozenset({"server_tool_use", "mcp_tool_use", "container_upload"})
"""Blocks of work that the provider does itself; they are kept whole, and so are those of its results."""

_Tokens = Annotated[int, Field(ge=0)] | None


class _Usage(BaseModel):
    input_tokens: _Tokens = None
    cache_creation_input_tokens: _Tokens = None
    cache_read_input_tokens: _Tokens = None
    output_tokens: _Tokens = None


class _Message(BaseModel):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Delta(BaseModel):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    citation: JsonValue = None
    stop_reason: str | None = None


class _Event(BaseModel):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: dict[str, JsonValue] | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


@dataclass(slots=True)
class _Draft:
    """A block in the making: nothing of it counts until the message has finished."""

    block: dict[str, JsonValue]
    pieces: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return str(self.block.get("type"))

    def text(self, name: str) -> str:
        """A member that came in pieces, after what the block began with."""
        begun = self.block.get(name)
        return whole((begun if isinstance(begun, str) else "") + "".join(self.pieces))


class StreamedMessage:
    """Collects the events of one answer."""

    def __init__(self) -> None:
        self._drafts: dict[int, _Draft] = {}
        self._size = AnswerSize()
        self._stop_reason = ""
        self._message: _Message | None = None
        self._usage: dict[str, int] = {}

    @property
    def is_begun(self) -> bool:
        """True once the provider began an answer."""
        return self._message is not None

    @property
    def is_finished(self) -> bool:
        """True once the provider gave a stop reason."""
        return bool(self._stop_reason)

    def take(self, fields: object) -> Iterator[TextDelta | ThinkingDelta]:
        """Add an event, as the JSON object that the server sent, and give what may be shown of it.

        Raises:
            ProviderFailed: it is not an event of a message, or comes after the end.
        """
        try:
            event = _Event.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the event"
            raise ProviderFailed(f"the provider's stream is not that of a message: {where}: {first['msg']}") from error
        match event.type:
            case "message_start":
                self._message = event.message or _Message()
                self._count(self._message.usage)
            case "content_block_start":
                yield from self._start(event.index, event.content_block or {})
            case "content_block_delta":
                yield from self._continue(event.index, event.delta or _Delta())
            case "message_delta":
                self._count(event.usage)
                self._stop_reason = (event.delta and event.delta.stop_reason) or self._stop_reason
            case _:  # the mark of an end, a sign of life, or something new
                pass

    def _count(self, usage: _Usage | None) -> None:
        """Counts in later events are totals, and replace those of earlier ones."""
        if usage is not None:
            self._usage |= usage.model_dump(exclude_none=True)

    def _start(self, index: int, block: dict[str, JsonValue]) -> Iterator[TextDelta | ThinkingDelta]:
        self._refuse_more()
        if index in self._drafts:
            raise ProviderFailed("the provider began a block twice")
        self._drafts[index] = draft = _Draft(dict(block))
        for name, delta in (("text", TextDelta), ("thinking", ThinkingDelta)):
            begun = block.get(name)
            if isinstance(begun, str) and begun and draft.kind == name:
                self._size.add(begun)
                yield delta(shown(begun))

    def _continue(self, index: int, delta: _Delta) -> Iterator[TextDelta | ThinkingDelta]:
        self._refuse_more()
        draft = self._drafts.get(index)
        if draft is None:
            raise ProviderFailed("the provider continued a block that it had not begun")
        match delta.type, draft.kind:
            case "text_delta", "text":
                self._add(draft, delta.text)
                yield TextDelta(shown(delta.text))
            case "thinking_delta", "thinking":
                self._add(draft, delta.thinking)
                yield ThinkingDelta(shown(delta.thinking))
            case "signature_delta", "thinking":
                draft.block["signature"] = delta.signature
            case "input_json_delta", "tool_use" | "server_tool_use" | "mcp_tool_use":
                self._add(draft, delta.partial_json)
            case "citations_delta", "text":
                citations = draft.block.get("citations")
                draft.block["citations"] = [*(citations if isinstance(citations, list) else []), delta.citation]
            case _:
                raise ProviderFailed(f"the provider sent {delta.type[:80]!r} in a block of type {draft.kind[:80]!r}")

    def _add(self, draft: _Draft, piece: str) -> None:
        self._size.add(piece)
        draft.pieces.append(piece)

    def _refuse_more(self) -> None:
        if self.is_finished:
            raise ProviderFailed("the provider went on after it had finished the step")

    def finished(self) -> StepFinished:
        """Give the finished step.

        Raises:
            ProviderStreamIncomplete: no stop reason came, or a call without a name.
            ProviderFailed: what came cannot be recorded.
        """
        if not self.is_finished:
            raise ProviderStreamIncomplete("the provider's answer ended without a stop reason")
        drafts = list(self._drafts.values())
        made = [self._block_of(draft, is_last=draft is drafts[-1]) for draft in drafts]
        blocks = tuple(block for block in made if block is not None)
        if self._stop_reason == "tool_use" and not any(isinstance(block, CallBlock) for block in blocks):
            raise ProviderFailed("the provider finished with tool_use and sent no tool call in a form that is known")
        message = self._message or _Message()
        return StepFinished(
            blocks=blocks,
            finish_reason=whole(self._stop_reason),
            model=message.model and whole(message.model),
            provider_response_id=message.id and whole(message.id),
            usage=self._tokens(),
        )

    def _tokens(self) -> Usage | None:
        """What a provider read from its cache, or put there, is input, too."""
        if not self._usage:
            return None
        read = sum(count for name, count in self._usage.items() if name != "output_tokens")
        return Usage(input_tokens=read, output_tokens=self._usage.get("output_tokens", 0))

    def _block_of(self, draft: _Draft, *, is_last: bool) -> Block | None:
        kind, block = draft.kind, draft.block
        if kind == "text":
            text, kept = draft.text("text"), kept_of_block(block, "text")
            return TextBlock(text, kept) if text or kept else None
        if kind == "thinking":
            block["thinking"] = draft.text("thinking")
        if (thought := thought_of(block)) is not None:
            return thought
        if kind == "tool_use":
            return self._call_of(draft, is_last=is_last)
        if kind in _OF_THE_PROVIDER or kind.endswith("_tool_result"):
            return TextBlock("", {KEPT: _with_input(draft)})
        raise ProviderFailed(f"the provider sent a block of type {kind[:80]!r}, which is not known here")

    def _call_of(self, draft: _Draft, *, is_last: bool) -> CallBlock:
        name, call_id = tool_name(draft.block.get("name")), draft.block.get("id")
        return CallBlock(
            whole(call_id) if isinstance(call_id, str) else None,
            name,
            whole(self._arguments_of(draft, is_cut=is_last and self._stop_reason in _CUT_SHORT)),
            kept_of_block(draft.block, "id", "name", "input"),
        )

    def _arguments_of(self, draft: _Draft, *, is_cut: bool) -> str:
        """Raw text: what came in pieces, else what the block began with; no cut text is strict JSON by our doing."""
        if draft.pieces:
            return "".join(draft.pieces)
        begun = draft.block.get("input") or {}
        text = json.dumps(begun, ensure_ascii=False)
        return text[:-1] if is_cut else text


def _with_input(draft: _Draft) -> dict[str, JsonValue]:
    if not draft.pieces:
        return draft.block
    try:
        return {**draft.block, "input": json.loads("".join(draft.pieces))}
    except ValueError as error:
        raise ProviderFailed("the provider called a tool of its own with arguments that are no JSON") from error


def step_of_message(message: Mapping[str, object]) -> StepFinished:
    """Give the step of a message that came whole; the same rules as for one that came in pieces.

    Raises:
        ProviderStreamIncomplete, ProviderFailed: as `StreamedMessage`.
    """
    content = message.get("content")
    events: list[dict[str, object]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(content if isinstance(content, list) else []):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
    events.append({"type": "message_delta", "delta": {"stop_reason": message.get("stop_reason")}})
    step = StreamedMessage()
    for event in events:
        list(step.take(event))
    return step.finished()
