"""What our loop drives for a runtime: it is interrupted and awaited before the runtime gives its store back."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio import CancelScope

from ...application.host_phases import CANCEL_SECONDS, HostClosedMeanwhile

ResultT = TypeVar("ResultT")


class LivingTurns:
    """The turns of one runtime that run in its users' own tasks; made, and ended, on its event loop."""

    def __init__(self) -> None:
        self._scopes: set[CancelScope] = set()
        self._changed = anyio.Event()
        self._thread = threading.get_ident()

    async def run(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Drive a turn, unless the runtime is left before it has ended.

        Raises:
            HostClosedMeanwhile: it was left.
        """
        if threading.get_ident() != self._thread:  # a scope belongs to its event loop
            return await work()
        scope = CancelScope()
        self._scopes.add(scope)
        try:
            with scope:
                return await work()
        finally:
            self._scopes.discard(scope)
            self._changed.set()
        raise HostClosedMeanwhile

    async def end(self) -> None:
        """Interrupt all, and wait until each has ended, or a while; may be begun anew."""
        for scope in self._scopes:
            scope.cancel()
        with anyio.move_on_after(CANCEL_SECONDS):
            while self._scopes:
                self._changed = anyio.Event()
                await self._changed.wait()
