"""The ledger for callers on an event loop: short transactions in threads, never torn by a cancellation.

SPEC section 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from ..domain.commands import AnyCommand
from ..domain.identifiers import RunId, SessionId
from ..domain.run.state import Run
from ..domain.session.state import Session
from .ledger import Ledger, Receipt
from .task_queue import TaskQueue

READERS_MAX = 64

StateT = TypeVar("StateT")


class AsyncLedger:
    """Executes commands and reads states off the event loop.

    Args:
        ledger: does the work.
        readers_max: how many tasks of one event loop may read states at once, 1 or more.
    """

    def __init__(self, ledger: Ledger, *, readers_max: int = READERS_MAX) -> None:
        self.ledger = ledger
        self._readers_max = readers_max
        self._readers: RunVar[CapacityLimiter] = RunVar("safepoint.ledger.readers")
        self._queues: RunVar[TaskQueue] = RunVar("safepoint.ledger.queue")

    async def execute(self, command: AnyCommand) -> Receipt:
        """As `Ledger.execute`. Waiting for the writer is shielded: a cancelled caller still learns what was written.

        Tasks that wait at the same time are written together, from one thread.
        """
        return await self.here().execute(command)

    def here(self) -> TaskQueue:
        """What executes commands in the running event loop, for tasks that ask often: to find it takes a while."""
        queue = self._queues.get(None)
        if queue is None:
            queue = TaskQueue(self._execute)
            self._queues.set(queue)
        return queue

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
        return state  # noqa: RET504 (by its type, a scope might swallow an error and go on)

    def _execute(self, commands: Sequence[AnyCommand]) -> Sequence[Receipt | Exception]:
        if len(commands) > 1:
            return self.ledger.execute_all(commands)
        try:
            return (self.ledger.execute(commands[0]),)
        except Exception as error:  # noqa: BLE001 (whoever asked gets it)
            return (error,)

    def _limiter(self) -> CapacityLimiter:
        """A limiter belongs to one event loop, as a queue does; several may share a ledger."""
        limiter = self._readers.get(None)
        if limiter is None:
            limiter = CapacityLimiter(self._readers_max)
            self._readers.set(limiter)
        return limiter
