"""How a command reaches the living process that owns its session. SPEC section 7, "People from elsewhere"."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from ..domain.errors import SafepointError
from .incarnations import Incarnation

MESSAGE_BYTES_MAX = 1024 * 1024
"""Bound on one request and on one reply, encoded, without the line end."""

Message: TypeAlias = Mapping[str, JsonValue]
Handler: TypeAlias = Callable[[Message], Message]


class WhyNoAnswer(StrEnum):
    """Why a request came back without a reply."""

    NOT_LISTENING = "not_listening"
    TIMED_OUT = "timed_out"
    BUSY = "busy"
    TOO_LARGE = "too_large"
    HANDLER_FAILED = "handler_failed"
    BROKEN_OFF = "broken_off"
    GARBLED = "garbled"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the owner's handler returned."""

    message: Message


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The owner did not reply.

    Attributes:
        may_have_been_handled: the request was handed over, so that its effect cannot be excluded: look before asking
            again.
    """

    why: WhyNoAnswer
    may_have_been_handled: bool


class HandoverUnavailable(SafepointError):
    """This process cannot listen; `detail` says why."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"cannot listen for commands of other processes: {detail}")
        self.detail = detail


class Listener(Protocol):
    """An open ear."""

    @abstractmethod
    def close(self) -> None:
        """Stop listening and wait, bounded, for handlers that run; idempotent."""


class Handover(Protocol):
    """One request, one reply, between processes of one user on one host."""

    @abstractmethod
    def serve(self, incarnation: Incarnation, handler: Handler) -> Listener:
        """Listen for requests to `incarnation`, which must be a life of this process.

        The handler is called on threads of the listener, several at once; what it raises is told to nobody but as
        HANDLER_FAILED.

        Raises:
            HandoverUnavailable: the ear cannot be opened, or is open already.
        """

    @abstractmethod
    def ask(self, incarnation: Incarnation, request: Message, timeout_seconds: float) -> Reply | NoAnswer:
        """Ask the process that lives as `incarnation`; at most `timeout_seconds` for everything.

        Never raises for what the other side does.
        """
