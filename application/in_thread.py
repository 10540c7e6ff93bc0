"""Work in threads that no cancellation tears: whoever asked for it learns that it has ended, or that it never began.

`asyncio.wait_for` and `Task.cancel` know nothing of anyio's shields: they end the wait for a thread, and the thread
goes on, with whatever it takes. ADR 0090.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

import anyio
from anyio import CapacityLimiter, from_thread, get_cancelled_exc_class, to_thread

from .abandonable_call import Ended, Returned, outcome

ResultT = TypeVar("ResultT")


async def in_thread(work: Callable[[], ResultT], *, undo: Callable[[ResultT], None] | None = None) -> ResultT:
    """Call something that blocks for a bounded time, off the event loop, and await it whatever else happens.

    A scope's cancellation is heard of at the next await, and the result is kept. The event loop's own, which comes
    once, at this await, goes on as one when the work has ended: nobody gets the result.

    Args:
        undo: gets, in a thread, a result that nobody gets.

    Raises:
        BaseException: what the work raised, where the task was not cancelled.
    """
    call = _Call(work)
    cancelled = await waited_out(call.wait)
    ended = call.ended
    assert ended is not None  # it was waited for
    if cancelled is not None:
        if undo is not None and isinstance(ended, Returned):
            await in_thread(partial(undo, ended.value))
        raise cancelled
    if isinstance(ended, Returned):
        result: ResultT = ended.value
        return result
    raise ended.error


async def waited_out(wait: Callable[[], Awaitable[None]]) -> BaseException | None:
    """Wait for something to its end, however often the task is cancelled.

    Args:
        wait: begins to wait, and is called again after each cancellation of the event loop.

    Returns:
        The event loop's own cancellation, if there was one: whoever waited raises it when he is done.
    """
    cancelled: BaseException | None = None
    while True:
        try:
            with anyio.CancelScope(shield=True):
                await wait()
        except get_cancelled_exc_class() as error:  # of the event loop: from a scope it is shielded
            cancelled = error
        else:
            return cancelled


class _Call(Generic[ResultT]):
    """One piece of work, and how it ended; waited for by one task, as often as its waiting is cancelled."""

    __slots__ = ("_left", "_over", "_work", "ended")

    def __init__(self, work: Callable[[], ResultT]) -> None:
        self.ended: Ended[ResultT] | None = None
        self._work = work
        self._over = anyio.Event()
        self._left = False

    async def wait(self) -> None:
        """Begin it, where it has not begun, and wait for its end."""
        if self._left:
            await self._over.wait()
            return
        begun = threading.Lock()
        try:
            await to_thread.run_sync(self._run, begun, limiter=CapacityLimiter(1))
        except BaseException:
            if not begun.acquire(blocking=False):  # else no thread begins it any more
                self._left = True
                if self.ended is not None:  # it looked before it could see that nobody waits
                    self._over.set()
            raise

    def _run(self, begun: threading.Lock) -> None:
        if not begun.acquire(blocking=False):
            return
        self.ended = outcome(self._work)
        if self._left:
            from_thread.run_sync(self._over.set)
