"""How many implementations may run at once: of one tool, and of all synchronous ones. SPEC section 8."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from ..ports.tool_catalog import BoundCall, SyncCall

THREADS_MAX = 256


class Places:
    """Places for the calls of one runtime. A limiter belongs to one event loop, so each loop counts its own.

    Args:
        threads_max: how many synchronous tools may run at once, 1 or more.
    """

    def __init__(self, *, threads_max: int = THREADS_MAX) -> None:
        self._threads_max = threads_max
        self._limiters: RunVar[dict[tuple[str, int], CapacityLimiter]] = RunVar("safepoint.places")

    @asynccontextmanager
    async def place(self, bound: BoundCall) -> AsyncIterator[None]:
        """Hold a place from before T1 to after T2: what waits for one is not dispatched, and its time does not run."""
        if bound.concurrency_limit is None:
            async with self._thread(bound):
                yield
            return
        async with self._limiter(bound.tool_name, bound.concurrency_limit), self._thread(bound):
            yield

    @asynccontextmanager
    async def _thread(self, bound: BoundCall) -> AsyncIterator[None]:
        if not isinstance(bound.implementation, SyncCall):
            yield
            return
        async with self._limiter("", self._threads_max):
            yield

    def _limiter(self, name: str, places_max: int) -> CapacityLimiter:
        limiters = self._limiters.get(None)
        if limiters is None:
            limiters = {}
            self._limiters.set(limiters)
        return limiters.setdefault((name, places_max), CapacityLimiter(places_max))
