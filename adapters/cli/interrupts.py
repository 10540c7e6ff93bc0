"""Ctrl-C and SIGTERM: the first one stops the run in order, a second one ends this process at once. SPEC section 17."""

from __future__ import annotations

import os
import signal
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from ...domain.errors import StoreError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
ResultT = TypeVar("ResultT")


class Stoppable(Protocol):
    """What a signal stops: a live run, or work without one."""

    @abstractmethod
    async def cancel(self, by: str) -> object:
        """Stop it in order."""


class Interrupts:
    """Watches for signals while a run is driven.

    Args:
        by: who stops it, for the record.
        tell: takes a line for the person.
        bound_seconds: how long live tools are waited for, to be told.

    Attributes:
        received: the first signal, None while there was none.
    """

    def __init__(self, by: str, tell: Callable[[str], None], bound_seconds: float) -> None:
        self.received: signal.Signals | None = None
        self._by = by
        self._tell = tell
        self._bound_seconds = bound_seconds
        self._live: Stoppable | None = None

    async def watching(self, work: Callable[[Callable[[Stoppable], None]], Awaitable[ResultT]]) -> ResultT:
        """Await work that tells how its run can be stopped."""
        results: list[ResultT] = []
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, group)
            results.append(await work(lambda live: self._started(live, group)))
            group.cancel_scope.cancel()
        return results[0]

    def _started(self, live: Stoppable, group: TaskGroup) -> None:
        self._live = live
        if self.received is not None:
            group.start_soon(self._stop, live)

    async def _watch(self, group: TaskGroup) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            async for received in signals:
                if self.received is not None:
                    end_at_once(received)
                self.received = received
                waited = f"tools that run are waited for up to {self._bound_seconds:g} s"
                self._tell(f"Stopping: {waited}. Once more ends this process at once.")
                if self._live is not None:
                    group.start_soon(self._stop, self._live)

    async def _stop(self, live: Stoppable) -> None:
        try:
            await live.cancel(self._by)
        except StoreError as error:  # the live work is told to stop all the same
            self._tell(f"That it was stopped could not be recorded: {error.detail}")


def end_at_once(received: signal.Signals) -> None:
    """Die by the signal, as a program without a handler does: no cleanup; what is open is repaired later."""
    signal.signal(received, signal.SIG_DFL)
    os.kill(os.getpid(), received)
