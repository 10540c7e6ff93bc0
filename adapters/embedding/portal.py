"""The way of blocking code to the event loop of its runtime, which runs in a thread of its own. SPEC section 17."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar, TypeVarTuple, Unpack, overload

import anyio
from anyio.from_thread import BlockingPortal

from .own_process import OpenedBeforeFork, OwnProcess

ResultT = TypeVar("ResultT")
ArgsT = TypeVarTuple("ArgsT")


class Portal:
    """Calls, waits and opens blocks on an event loop; from any thread of the process that opened it.

    The thread is kept here and not by a generator: a fork of the process would finalize that, and wait for ever.

    Raises (all methods):
        OpenedBeforeFork: this is a fork of that process, where nobody would answer.
    """

    def __init__(self) -> None:
        self._own = OwnProcess()
        started: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(target=_run, args=[started], name="safepoint", daemon=True)
        self._thread.start()
        self._portal = started.result()

    def close(self, *, cancel_remaining: bool = False) -> None:
        """End the event loop and its thread.

        Args:
            cancel_remaining: what still runs there is cancelled, else waited for.
        """
        self._own.check()
        self._portal.call(self._portal.stop, cancel_remaining)
        self._thread.join()

    @property
    def is_forked(self) -> bool:
        """Whether this is a fork of the process that opened it."""
        return not self._own.is_this

    @overload
    def call(self, work: Callable[[Unpack[ArgsT]], Awaitable[ResultT]], *args: *ArgsT) -> ResultT: ...

    @overload
    def call(self, work: Callable[[Unpack[ArgsT]], ResultT], *args: *ArgsT) -> ResultT: ...

    def call(self, work: Callable[[Unpack[ArgsT]], Awaitable[ResultT] | ResultT], *args: *ArgsT) -> ResultT:
        """Call it there, and wait for it where it is asynchronous."""
        self._own.check()
        called: ResultT = self._portal.call(work, *args)  # type: ignore[assignment]
        return called

    def wait(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Wait for it; whoever is interrupted meanwhile interrupts it, too, and waits until it has ended."""
        self._own.check()
        ended = threading.Event()

        async def watched() -> ResultT:
            try:
                return await work()
            finally:
                ended.set()

        future = self._portal.start_task_soon(watched)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait()
            raise

    @contextmanager
    def block(self, opened: AbstractAsyncContextManager[ResultT, bool | None]) -> Iterator[ResultT]:
        """Open a block there; a fork that leaves it changes nothing of the parent's."""
        self._own.check()
        entered = self._portal.wrap_async_context_manager(opened)
        value = entered.__enter__()
        try:
            yield value
        except BaseException as error:
            if self.is_forked or not entered.__exit__(type(error), error, error.__traceback__):
                raise
        else:
            if self.is_forked:
                raise OpenedBeforeFork
            entered.__exit__(None, None, None)


def _run(started: Future[BlockingPortal]) -> None:
    async def until_stopped() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        anyio.run(until_stopped)
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
