"""Anthropic messages: a list of them, a request with its response, recorded requests, or one message a line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...ports.history_format import FindingCode, Place
from .anthropic_blocks import model_blocks, user_blocks
from .chat_calls import chat_calls
from .contents import Members, content_of, members_of, text_in
from .document_places import Document, placed_objects
from .exchanges import exchanges_in
from .lines import Reading
from .parts import Part, Setting, StepEnded
from .record_links import Records
from .sniffing import first_objects
from .transcript import TranscriptFormat
from .values import time_in

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "mcp_tool_use"})


class AnthropicMessages(TranscriptFormat):
    """The messages of Anthropic's API."""

    name = "anthropic"
    provider = "anthropic"
    wrappers = frozenset({"messages", "interactions", "content"})

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(
            text_in(found, "role") in {"user", "assistant"}
            and "tool_calls" not in found
            and (_has_block(found, _BLOCKS) or (found.get("type") == "message" and _has_block(found, {"text"})))
            for found in first_objects(data)
        )

    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """See `TranscriptFormat`."""
        exchanges = exchanges_in(document, ("messages",), reading)
        if not exchanges:
            reading.tell(FindingCode.UNKNOWN_SHAPE, document.place_of(document.value), "no list of messages")
        for exchange in exchanges:
            setting.model = text_in(exchange.request, "model") or setting.model
            system = content_of(exchange.request.get("system"), document.place_of(document.value), reading)
            setting.system = setting.system if system is None else system.text
            yield from placed_objects(document, exchange.items, "messages", reading)
            if exchange.response:
                yield document.place_of(exchange.response, "response"), exchange.response

    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """See `TranscriptFormat`."""
        records = Records()
        for number, (place, message) in enumerate(items):
            here = place._replace(source_id=text_in(message, "id"))
            at = time_in(message, "timestamp", here, reading)
            wrong = records.take(here, message, reading)
            if wrong is None:
                continue
            yield from wrong
            match message.get("role"):
                case "user":
                    yield from user_blocks(message.get("content"), here, at, reading)
                case "assistant":
                    yield from assistant_message(message, here, f"message-{number}", at, reading)
                case "system":
                    said = content_of(message.get("content"), here, reading)
                    setting.system += "" if said is None else said.text
                case None:
                    reading.tell(FindingCode.UNKNOWN_SHAPE, here, "a message without a role")
                case _:
                    reading.tell(FindingCode.UNKNOWN_TYPE, here, "a message of another role")


def assistant_message(message: Members, place: Place, step: str, at: str | None, reading: Reading) -> Iterator[Part]:
    """The parts of one message of the model, and why it ended, where that is said."""
    yield from model_blocks(message.get("content"), place, step, at, reading)
    yield from chat_calls(message, place, step, at, reading)
    finish = text_in(message, "stop_reason")
    if finish is not None:
        yield StepEnded(place, step, finish, text_in(message, "model"), text_in(message, "id"), at)


def _has_block(message: Members, types: Collection[str]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(text_in(members_of(block), "type") in types for block in content)
