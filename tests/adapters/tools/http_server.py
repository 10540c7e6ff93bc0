"""A real HTTP server on loopback that counts effects, and keeps the promise of a key as well or as badly as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Plan = Callable[["Effects", "Answering"], None]


@dataclass
class Effects:
    """What a server did.

    Attributes:
        done: each effect, with the key under which it happened.
        answered: the answer that a key was given, where keys are honoured.
        received: every request, as method, path and headers.
    """

    done: list[str | None] = field(default_factory=list)
    answered: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    received: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def count(self, method: str = "POST") -> int:
        return sum(1 for one, _, _ in self.received if one == method)


class Answering(BaseHTTPRequestHandler):
    """Takes requests as the plan of its server says."""

    protocol_version = "HTTP/1.1"
    server: _Server
    body: bytes = b""

    def take(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        effects = self.server.effects
        with effects.lock:
            effects.received.append((self.command, self.path, headers))
        self.server.plan(effects, self)

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")

    def answer(self, status: int, value: object, **headers: str) -> None:
        encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, said in headers.items():
            self.send_header(name.replace("_", "-"), said)
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def log_message(self, *said: object) -> None:
        """Say nothing."""


for _method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
    setattr(Answering, f"do_{_method}", Answering.take)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    effects: Effects
    plan: Plan


def honouring(effects: Effects, to: Answering) -> None:
    """One effect for each key; the same answer for the same key."""
    with effects.lock:
        known = None if to.key is None else effects.answered.get(to.key)
        if known is None:
            effects.done.append(to.key)
            known = (201, {"receipt": len(effects.done)})
            if to.key is not None:
                effects.answered[to.key] = known
    to.answer(*known)


def ignoring(effects: Effects, to: Answering) -> None:
    """One effect for each request, whatever its key."""
    with effects.lock:
        effects.done.append(to.key)
    to.answer(201, {"receipt": len(effects.done)})


def then(*answers: tuple[int, object]) -> Plan:
    """One effect for each key, and planned answers; the last one for all further requests."""

    def plan(effects: Effects, to: Answering) -> None:
        with effects.lock:
            if to.key not in effects.answered:
                effects.done.append(to.key)
                effects.answered[to.key or ""] = (0, {})
            status, value = answers[min(len(effects.received), len(answers)) - 1]
        to.answer(status, value)

    return plan


@contextmanager
def serving(plan: Plan) -> Iterator[Effects]:
    """Serve on a free port of loopback."""
    server = _Server(("127.0.0.1", 0), Answering)
    server.effects, server.plan = Effects(), plan
    server.effects.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.effects
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
