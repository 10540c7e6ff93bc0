"""One line of JSON on a socket: bounded in size and in time."""

from __future__ import annotations

import json
import socket
import time

from ...ports.handover import MESSAGE_BYTES_MAX, Message

LINE_BYTES_MAX = MESSAGE_BYTES_MAX + 1024  # room for what frames a message


class LineRefused(Exception):
    """The other side broke off, or sent more than a line may hold."""


def encode(message: Message) -> bytes | None:
    """The message as a line; None when it is larger than a message may be.

    Raises:
        ValueError, TypeError: it is not JSON.
    """
    line = json.dumps(dict(message), allow_nan=False, separators=(",", ":")).encode("ascii")
    return line if len(line) <= MESSAGE_BYTES_MAX else None


def send_line(connection: socket.socket, line: bytes, deadline: float) -> None:
    """Send a line before `deadline` (monotonic). Raises TimeoutError, OSError."""
    connection.settimeout(_left(deadline))
    connection.sendall(line + b"\n")


def receive_line(connection: socket.socket, deadline: float) -> bytes:
    """Receive a line before `deadline` (monotonic). Raises TimeoutError, LineRefused, OSError."""
    received = b""
    while True:
        connection.settimeout(_left(deadline))
        chunk = connection.recv(16 * 1024)
        received += chunk
        line, end, _ = received.partition(b"\n")
        if len(line) > LINE_BYTES_MAX or not chunk:
            raise LineRefused
        if end:
            return line


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
