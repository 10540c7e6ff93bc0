"""A server on loopback that speaks the OpenAI chat API, as well or as badly as a test wants."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

API_KEY = "sk-secret-for-tests-only"


@dataclass
class Received:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ChatServer:
    """Answers each request with the next planned answer; the last one is used again for all further requests."""

    answers: Sequence[Callable[[Answering], None]]
    received: list[Received] = field(default_factory=list)
    base_url: str = ""
    ending: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer_for(self, request: Received) -> Callable[[Answering], None]:
        with self.lock:
            self.received.append(request)
            return self.answers[min(len(self.received), len(self.answers)) - 1]

    def count(self) -> int:
        return len(self.received)


class Answering(BaseHTTPRequestHandler):
    """What an answer can do with the connection."""

    protocol_version = "HTTP/1.1"
    server: _HTTPServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.chat.answer_for(Received(self.path, headers, body))(self)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def raw(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, value: object) -> None:
        self.raw(b"data: " + json.dumps(value).encode() + b"\n\n")

    def end(self, *, done: bool = True) -> None:
        if done:
            self.raw(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def drop(self) -> None:
        """Cut the connection without ending the body."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def plain(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def wait_for_the_end_of_the_test(self) -> None:
        self.close_connection = True
        self.server.chat.ending.wait()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the parent's
        """Say nothing: the output belongs to the tests."""


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    chat: ChatServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def serving(*answers: Callable[[Answering], None]) -> Iterator[ChatServer]:
    """Serve the answers, in order, until the block is left."""
    chat = ChatServer(answers)
    server = _HTTPServer(("127.0.0.1", 0), Answering)
    server.chat = chat
    chat.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield chat
    finally:
        chat.ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


def chunk(
    content: str | None = None,
    *,
    calls: Sequence[object] | None = None,
    finish: str | None = None,
    usage: tuple[int, int] | None = None,
    **delta: object,
) -> dict[str, object]:
    """One chunk of a streamed chat completion."""
    fields: dict[str, object] = {"role": "assistant", **delta}
    if content is not None:
        fields["content"] = content
    if calls is not None:
        fields["tool_calls"] = calls
    value: dict[str, object] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "test-model-2024",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }
    if usage is not None:
        value |= {"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": 0}}
    return value


def fragment(
    index: int | None, arguments: str = "", *, call_id: str | None = None, name: str | None = None
) -> dict[str, object]:
    """One fragment of a streamed tool call."""
    function = {"arguments": arguments} | ({"name": name} if name is not None else {})
    value: dict[str, object] = {"type": "function", "function": function}
    if index is not None:
        value["index"] = index
    if call_id is not None:
        value["id"] = call_id
    return value


def streams(*chunks: object, done: bool = True) -> Callable[[Answering], None]:
    """Send these chunks and end the answer properly."""

    def answer(to: Answering) -> None:
        to.begin()
        for value in chunks:
            if isinstance(value, bytes):
                to.raw(value)
            else:
                to.event(value)
        to.end(done=done)

    return answer


def streams_and_drops(*chunks: object) -> Callable[[Answering], None]:
    """Send these chunks and cut the connection."""

    def answer(to: Answering) -> None:
        to.begin()
        for value in chunks:
            to.event(value)
        to.drop()

    return answer


def refuses(
    status: int, message: str = "no", headers: dict[str, str] | None = None, code: str | None = None
) -> Callable[[Answering], None]:
    """Answer with an error status."""
    return lambda to: to.plain(status, {"error": {"message": message, "type": "error", "code": code}}, headers)


def keeps_still(to: Answering) -> None:
    """Begin an answer and send nothing more."""
    to.begin()
    to.event(chunk("I"))
    to.wait_for_the_end_of_the_test()


def drops_before_the_answer(to: Answering) -> None:
    """Take the request and hang up."""
    to.drop()
