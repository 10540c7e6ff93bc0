"""OpenAI chat messages: a list of them, a request with its response, recorded requests, or one message a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...ports.history_format import FindingCode, Place
from .anthropic_blocks import model_blocks
from .chat_calls import chat_calls
from .contents import Members, content_of, members_of, text_in
from .document_places import Document, placed_objects
from .exchanges import exchanges_in
from .lines import Reading
from .parts import ModelThought, Part, ResultGiven, Setting, StepEnded, UserSaid
from .record_links import Records
from .sniffing import first_objects
from .transcript import TranscriptFormat
from .values import time_in

_SYSTEM = frozenset({"system", "developer"})
_ROLES = _SYSTEM | {"user", "assistant", "tool", "function"}
_REASONING = ("reasoning_content", "reasoning")


class OpenAiChat(TranscriptFormat):
    """The messages of OpenAI's chat completions, and of the many that speak them."""

    name = "openai-chat"
    provider = "openai"
    wrappers = frozenset({"messages", "history", "interactions", "choices"})

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(
            text_in(found, "role") in _ROLES and found.get("type", "message") == "message"
            for found in first_objects(data)
        )

    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """See `TranscriptFormat`."""
        exchanges = exchanges_in(document, ("messages", "history"), reading)
        if not exchanges:
            reading.tell(FindingCode.UNKNOWN_SHAPE, document.place_of(document.value), "no list of messages")
        for exchange in exchanges:
            setting.model = text_in(exchange.request, "model") or setting.model
            yield from placed_objects(document, exchange.items, "messages", reading)
            choices = exchange.response.get("choices")
            for number, choice in enumerate(choices if isinstance(choices, list) else []):
                message = members_of(members_of(choice).get("message"))
                if number:
                    here = document.place_of(choice)
                    reading.tell_once(FindingCode.OTHER_CONVERSATION, here, "another choice of the same response")
                elif message:
                    place = document.place_of(members_of(choice).get("message"), "choices[0].message")
                    yield place, {**message, "finish_reason": members_of(choice).get("finish_reason")}

    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """See `TranscriptFormat`."""
        records, spoken = Records(), False
        for number, (place, message) in enumerate(items):
            role = text_in(message, "role")
            if role not in _ROLES:
                code = FindingCode.UNKNOWN_SHAPE if role is None else FindingCode.UNKNOWN_TYPE
                reading.tell(code, place, "a message without a role" if role is None else "a message of another role")
                continue
            here = place._replace(source_id=text_in(message, "id") or text_in(message, "message_id"))
            at = time_in(message, "timestamp", here, reading)
            wrong = records.take(here, message, reading)
            if wrong is None:
                continue
            yield from wrong
            if role in _SYSTEM:
                _instruct(message, here, setting, reading, spoken=spoken)
                continue
            spoken = True
            if role == "user":
                if message.get("content") is None:
                    reading.tell(FindingCode.UNKNOWN_SHAPE, here, "a message without content")
                elif (said := content_of(message.get("content"), here, reading)) is not None:
                    yield UserSaid(here, said.text, said.attachments, at=at)
            elif role == "assistant":
                yield from _assistant(message, here, f"message-{number}", at, reading)
            else:
                yield from _answers(message, here, at, reading)


def _instruct(message: Members, place: Place, setting: Setting, reading: Reading, *, spoken: bool) -> None:
    """Instructions before the conversation are what a run was executed with; later ones have no place here."""
    if spoken:
        reading.tell_once(FindingCode.NOT_CONVERSATION, place, "instructions in mid-conversation")
    elif (said := content_of(message.get("content"), place, reading)) is not None:
        setting.system += said.text


def _assistant(message: Members, place: Place, step: str, at: str | None, reading: Reading) -> Iterator[Part]:
    thought = next((text for key in _REASONING if (text := text_in(message, key))), None)
    content = message.get("content") or message.get("refusal")
    if not (thought or content or message.get("tool_calls") or message.get("function_call")):
        empty = message.get("content") is not None
        code = FindingCode.NOT_CONVERSATION if empty else FindingCode.UNKNOWN_SHAPE
        reading.tell(code, place, "a message that says nothing" if empty else "a message without content")
    if thought:
        yield ModelThought(place, step, thought, at=at)
    yield from model_blocks(content, place, step, at, reading)
    yield from chat_calls(message, place, step, at, reading)
    finish, model = text_in(message, "finish_reason"), text_in(message, "model")
    if finish is not None:
        yield StepEnded(place, step, finish, model, at=at)


def _answers(message: Members, place: Place, at: str | None, reading: Reading) -> Iterator[Part]:
    listed = message.get("tool_call_ids")
    ids = listed if isinstance(listed, list) and "tool_call_id" not in message else [message.get("tool_call_id")]
    if len(ids) != 1 or not isinstance(ids[0], str | None):
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, f"one answer to {len(ids)} calls")
        return
    name = text_in(message, "name") or text_in(message, "function")
    failed = bool(message.get("error")) or message.get("is_error") is True
    yield ResultGiven(place, ids[0] or "", message.get("content"), failed, name, at)
