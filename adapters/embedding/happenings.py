"""What happens in a session, for whoever watches it. None of it is durable, and watching changes nothing (R13, R15)."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple, Self, TypeAlias

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from ...application.agent_loop import RunOutcome
from ...application.run_agent import Screen
from ...domain.identifiers import RunId, SessionId
from ...ports.checkpoints import NotKept, Unsupported
from ...ports.model_step import TextDelta, ThinkingDelta

__all__ = [
    "CallAnswered",
    "CallMade",
    "ContentNotBound",
    "Happening",
    "Happenings",
    "RunBegan",
    "RunFinished",
    "TextDelta",
    "ThinkingDelta",
    "ToolProgress",
    "Watch",
]

BUFFERED_MAX: Final = 10_000
"""Happenings that wait for a watcher; what comes while so many wait is left out, and counted."""


class ContentNotBound(NamedTuple):
    """A run is not bound to the content of its workspace, because that was not possible. ADR 0081.

    Where our own loop drives it, this is told before it begins.

    Attributes:
        code: why, such as `not_a_repository`; None where it could not be looked at.
    """

    session_id: SessionId
    code: str | None
    detail: str

    @classmethod
    def of(cls, session_id: SessionId, why: NotKept) -> Self:
        """What is told of an answer of the store of checkpoints."""
        return cls(session_id, str(why.why) if isinstance(why, Unsupported) else None, why.detail)


class RunBegan(NamedTuple):
    """A run has its first commit."""

    session_id: SessionId
    run_id: RunId


class CallMade(NamedTuple):
    """The model called a tool; whether the call is admitted is not known yet."""

    tool_name: str


class CallAnswered(NamedTuple):
    """A call has its committed answer."""

    tool_name: str


class ToolProgress(NamedTuple):
    """A tool says how far it is."""

    tool_name: str
    line: str


class RunFinished(NamedTuple):
    """Nothing more happens in this run.

    Attributes:
        outcome: None where it was not begun, or could not be recorded to its end.
    """

    session_id: SessionId
    outcome: RunOutcome | None


Happening: TypeAlias = (
    ContentNotBound | RunBegan | TextDelta | ThinkingDelta | CallMade | CallAnswered | ToolProgress | RunFinished
)
Watch: TypeAlias = Callable[[Happening], None]


class Happenings(AsyncIterator[Happening]):
    """What happens in one session from when this was made, until the next run there has finished.

    Attributes:
        left_out: how many were left out because too many waited.
    """

    def __init__(self, forget: Callable[[Happenings], None]) -> None:
        self.left_out = 0
        self._forget = forget
        self._waiting: deque[Happening] = deque()
        self._ended = False
        self._moved = anyio.Event()

    def tell(self, happening: Happening) -> None:
        """Let it be seen; called on the event loop."""
        if len(self._waiting) < BUFFERED_MAX or isinstance(happening, RunFinished):
            self._waiting.append(happening)
        else:
            self.left_out += 1
        if isinstance(happening, RunFinished):
            self._end()
        self._moved.set()

    def _end(self) -> None:
        self._ended = True
        self._forget(self)

    async def __anext__(self) -> Happening:
        """Wait for the next."""
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._moved = anyio.Event()
            await self._moved.wait()
        return self._waiting.popleft()

    async def aclose(self) -> None:
        """See nothing more."""
        self._waiting.clear()
        self._end()
        self._moved.set()


class Watchers:
    """Who watches one session, on one event loop."""

    def __init__(self, session_id: SessionId) -> None:
        self._session_id = session_id
        self._watchers: list[Happenings] = []

    def watch(self) -> Happenings:
        """See what happens from now on."""
        watcher = Happenings(self._forget)
        self._watchers.append(watcher)
        return watcher

    def _forget(self, watcher: Happenings) -> None:
        with contextlib.suppress(ValueError):
            self._watchers.remove(watcher)

    def screen(self, also: Watch | None) -> tuple[Screen, Watch]:
        """What a run is shown on, and the way to tell of other things; `also` is told the same."""
        token, here = current_token(), threading.get_ident()

        def tell(happening: Happening) -> None:
            for watcher in tuple(self._watchers):
                watcher.tell(happening)
            if also is not None:
                with contextlib.suppress(Exception):
                    also(happening)

        def progress(tool_name: str, line: str) -> None:
            told = ToolProgress(tool_name, line)
            if threading.get_ident() == here:
                tell(told)
            else:
                with contextlib.suppress(RuntimeError):
                    from_thread.run_sync(tell, told, token=token)

        def note(tool_name: str, what: str) -> None:
            tell(CallMade(tool_name) if what == "called" else CallAnswered(tool_name))

        def not_bound(why: NotKept) -> None:
            tell(ContentNotBound.of(self._session_id, why))

        return Screen(tell, note, progress, not_bound), tell
