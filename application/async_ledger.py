"""The ledger for callers on an event loop: short transactions in threads, never torn by a cancellation. SPEC section 7."""

from __future__ import annotations

import anyio
from anyio import CapacityLimiter, to_thread

from ..domain.commands import AnyCommand
from .ledger import Ledger, Receipt

CALLERS_MAX = 64


class AsyncLedger:
    """Executes commands off the event loop.

    Args:
        ledger: does the work.
        callers_max: how many may wait for the writer at once, 1 or more; further ones wait for a place.
    """

    def __init__(self, ledger: Ledger, *, callers_max: int = CALLERS_MAX) -> None:
        self.ledger = ledger
        self._limiter = CapacityLimiter(callers_max)

    async def execute(self, command: AnyCommand) -> Receipt:
        """As `Ledger.execute`. Waiting for the writer is shielded: a caller that is cancelled still learns what was written."""
        with anyio.CancelScope(shield=True):
            receipt = await to_thread.run_sync(self.ledger.execute, command, limiter=self._limiter)
        return receipt
