"""The ledger for callers on an event loop: short transactions in threads, never torn by a cancellation.

SPEC section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from ..domain.commands import AnyCommand
from ..domain.identifiers import RunId, SessionId
from ..domain.run.state import Run
from ..domain.session.state import Session
from .ledger import Ledger, Receipt

CALLERS_MAX = 64

StateT = TypeVar("StateT")


class AsyncLedger:
    """Executes commands and reads states off the event loop.

    Args:
        ledger: does the work.
        callers_max: how many tasks of one event loop may wait for the writer at once, 1 or more.
    """

    def __init__(self, ledger: Ledger, *, callers_max: int = CALLERS_MAX) -> None:
        self.ledger = ledger
        self._callers_max = callers_max
        self._limiters: RunVar[CapacityLimiter] = RunVar("safepoint.ledger")

    async def execute(self, command: AnyCommand) -> Receipt:
        """As `Ledger.execute`. Waiting for the writer is shielded: a cancelled caller still learns what was written."""
        with anyio.CancelScope(shield=True):
            receipt = await to_thread.run_sync(self.ledger.execute, command, limiter=self._limiter())
        return receipt  # noqa: RET504 (by its type, a scope might swallow an error and go on)

    async def session(self, session_id: SessionId) -> Session:
        """As `Ledger.session`."""
        return await self._read(lambda: self.ledger.session(session_id))

    async def run(self, run_id: RunId) -> Run:
        """As `Ledger.run`."""
        return await self._read(lambda: self.ledger.run(run_id))

    async def _read(self, read: Callable[[], StateT]) -> StateT:
        """Read in a thread: the writer may hold its lock for as long as a busy store makes it wait."""
        with anyio.CancelScope(shield=True):
            state = await to_thread.run_sync(read, limiter=self._limiter())
        return state  # noqa: RET504

    def _limiter(self) -> CapacityLimiter:
        """A limiter belongs to one event loop; several may share a ledger."""
        limiter = self._limiters.get(None)
        if limiter is None:
            limiter = CapacityLimiter(self._callers_max)
            self._limiters.set(limiter)
        return limiter
