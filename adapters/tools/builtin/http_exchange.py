"""One HTTP exchange with bounds on time and size, by the standard library alone. ADR 0059.

Blocking, for a thread. It says of each failure whether anything can have been sent.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ....domain.errors import SafepointError

LOOK_SECONDS: Final = 0.05
RESPONSE_BYTES_MAX: Final = 256 * 1024
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


class NothingSent(SafepointError):
    """The exchange ended before a byte of the request was sent."""


class ExchangeBroken(SafepointError):
    """The request may have arrived, and no whole answer came back."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked.

    Attributes:
        url: absolute, http or https.
        body: None for none.
    """

    method: str
    url: SplitResult
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `truncated` where the body has more than its beginning."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool


def origin_of(url: str) -> str:
    """The origin of an address: scheme, host, and the port where it is not the usual one.

    Raises:
        ValueError: it is no absolute http or https address, or names a user.
    """
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("it has characters that an address must spell otherwise")
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.username is not None:
        raise ValueError("it is no absolute http or https address without a user name")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port
    return f"{parts.scheme}://{host}" + ("" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}")


def exchange(request: Request, *, timeout_seconds: float, cancelled: Callable[[], bool]) -> Answer:
    """Send a request and read the answer; follows no redirect, uses no proxy and keeps no connection.

    Args:
        timeout_seconds: bound on the whole of it but the name's resolution, more than 0.
        cancelled: asked from another thread; true ends it at once.

    Raises:
        NothingSent: the server could not be reached.
        ExchangeBroken: it broke off, took too long, or was cancelled.
    """
    deadline = time.monotonic() + timeout_seconds
    connection = _connection(request.url, timeout_seconds)
    try:
        try:
            connection.connect()
        except (OSError, ValueError) as error:
            raise NothingSent(f"{request.url.hostname} could not be reached: {error}") from error
        with _ended_at(connection, deadline, cancelled) as why:
            try:
                connection.request(request.method, _target(request.url), request.body, dict(request.headers))
                answer = _read(connection.getresponse())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise ExchangeBroken(why() or f"the exchange broke off: {type(error).__name__}: {error}") from error
            if why():  # where nobody said how long the answer is, its end looks like this
                raise ExchangeBroken(why())
            return answer
    finally:
        connection.close()


def _connection(url: SplitResult, timeout_seconds: float) -> http.client.HTTPConnection:
    host, port = url.hostname or "", url.port or DEFAULT_PORTS[url.scheme]
    if url.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=timeout_seconds, context=context)
    return http.client.HTTPConnection(host, port, timeout=timeout_seconds)


def _target(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def _read(response: http.client.HTTPResponse) -> Answer:
    body = response.read(RESPONSE_BYTES_MAX + 1)
    if response.length and len(body) <= RESPONSE_BYTES_MAX:
        raise http.client.IncompleteRead(body, response.length)
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, body[:RESPONSE_BYTES_MAX], len(body) > RESPONSE_BYTES_MAX)


@contextlib.contextmanager
def _ended_at(
    connection: http.client.HTTPConnection, deadline: float, cancelled: Callable[[], bool]
) -> Iterator[Callable[[], str]]:
    """End a connection when its time is up: a time-out of the socket is one for each single read, never for all."""
    done = threading.Event()
    ended: list[str] = []
    connected = connection.sock  # the connection forgets it once it hands it to the answer

    def watch() -> None:
        while not done.wait(LOOK_SECONDS):
            if cancelled() or time.monotonic() > deadline:
                ended.append("it was cancelled" if cancelled() else "it took too long")
                with contextlib.suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)
                return

    watching = threading.Thread(target=watch, name="safepoint http", daemon=True)
    watching.start()
    try:
        yield lambda: ended[0] if ended else ""
    finally:
        done.set()
        watching.join()
