"""Events of a streamed Anthropic message, sent by the server that `chat_server` runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .chat_server import API_KEY, Answering, ChatServer

__all__ = ["API_KEY", "address_of"]


def address_of(server: ChatServer) -> str:
    """The base URL; this API's client adds the version itself."""
    return server.base_url.removesuffix("/v1")


def start(**usage: int) -> dict[str, Any]:
    """The beginning of a message."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model-2025",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1, **usage},
    }
    return {"type": "message_start", "message": message}


def begun(index: int, kind: str = "text", **members: Any) -> dict[str, Any]:
    """The beginning of a block."""
    known: Mapping[str, Mapping[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"id": f"toolu_{index}", "name": "read_file", "input": {}},
    }
    empty = known.get(kind, {})
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **empty, **members}}


def delta(index: int, **members: Any) -> dict[str, Any]:
    """A piece of a block; its kind follows from its member."""
    (name,) = members
    kind = {"partial_json": "input_json", "citation": "citations"}.get(name, name)
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **members}}


def stop(reason: str | None, **usage: int) -> dict[str, Any]:
    """The stop reason, with the tokens that the answer took."""
    fields = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": fields, "usage": {"output_tokens": 7, **usage}}


END: dict[str, Any] = {"type": "message_stop"}


def text(*pieces: str, index: int = 0) -> list[dict[str, Any]]:
    """A block of text in pieces."""
    return [
        begun(index),
        *(delta(index, text=piece) for piece in pieces),
        {"type": "content_block_stop", "index": index},
    ]


def use(*pieces: str, index: int = 0, **members: Any) -> list[dict[str, Any]]:
    """A call with its arguments in pieces."""
    return [begun(index, "tool_use", **members), *(delta(index, partial_json=piece) for piece in pieces)]


def said(*events: object) -> Callable[[Answering], None]:
    """Send these events and end the answer properly; bytes stand as they are."""

    def answer(to: Answering) -> None:
        _send(to, *events)
        to.end(done=False)

    return answer


def said_and_dropped(*events: object) -> Callable[[Answering], None]:
    """Send these events and cut the connection."""

    def answer(to: Answering) -> None:
        _send(to, *events)
        to.drop()

    return answer


def answers(*events: Any, reason: str = "end_turn") -> Callable[[Answering], None]:
    """A whole message of these blocks."""
    return said(start(), *events, stop(reason), END)


def refuses(status: int, kind: str, message: str = "no", headers: dict[str, str] | None = None) -> Any:
    """Answer with an error status."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return lambda to: to.plain(status, body, headers)


def fails(kind: str, message: str = "no") -> dict[str, Any]:
    """An error in the stream."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def keeps_still(to: Answering) -> None:
    """Begin an answer and send nothing more."""
    _send(to, start(), begun(0), delta(0, text="I"))
    to.wait_for_the_end_of_the_test()


def _send(to: Answering, *events: object) -> None:
    to.begin()
    for event in events:
        if isinstance(event, bytes):
            to.raw(event)
        else:
            assert isinstance(event, dict)
            to.raw(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
