"""The way of blocking code to the event loop of its runtime, which runs in a thread of its own. SPEC section 17."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, TypeVarTuple, Unpack, overload

import anyio

from .event_loop import Asked, EventLoop, Gate
from .own_process import OpenedBeforeFork, OwnProcess

ResultT = TypeVar("ResultT")
ArgsT = TypeVarTuple("ArgsT")


class Portal:
    """Calls, and opens blocks, on an event loop; from any thread of the process that opened it.

    Whoever is interrupted while he waits (Ctrl-C) interrupts what he waits for, and waits until that has ended.
    ADR 0094.

    The thread is kept here and not by a generator: a fork of the process would finalize that, and wait for ever.

    Raises (all methods):
        OpenedBeforeFork: this is a fork of that process, where nobody would answer.
        NobodyAnswers: it is closed, or this is its own event loop, which would wait for itself.
    """

    def __init__(self) -> None:
        self._own = OwnProcess()
        started: Future[EventLoop] = Future()
        thread = threading.Thread(target=_run, args=[started], name="safepoint", daemon=True)
        thread.start()
        self._there = started.result()

    def close(self, *, cancel_remaining: bool = False) -> None:
        """End the event loop and its thread.

        Args:
            cancel_remaining: what still runs there is cancelled; else what other threads have there is waited for.
        """
        self._own.check()
        self.end_left()
        self.call(self._there.stop, cancel_remaining)
        self._there.thread.join()

    def end_left(self, *, but: Block[Any] | None = None) -> None:
        """Cancel what nobody will leave any more: what this thread has there, or one that is gone; wait for its end.

        Of this thread that is a block which an interruption at an unlucky instant kept it from leaving.

        Args:
            but: a block that this thread has still to leave.
        """
        self._own.check()
        for asked in self.call(self._there.asked.copy):
            left = asked.thread is threading.current_thread() or not asked.thread.is_alive()
            if left and (but is None or asked is not but.asked):
                asked.interrupt()

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
        self._there.check()
        asked = Asked(self._there, partial(work, *args))
        asked.wait(asked.begin, asked.ended)
        return asked.result()

    @contextmanager
    def block(self, opened: AbstractAsyncContextManager[ResultT, bool | None]) -> Iterator[ResultT]:
        """Open a block there; a fork that leaves it changes nothing of the parent's."""
        block = self.opened(opened)
        try:
            with block as value:
                yield value
        finally:
            block.end()

    def opened(self, opened: AbstractAsyncContextManager[ResultT, bool | None]) -> Block[ResultT]:
        """As `block`, for whoever enters and leaves it in methods of his own."""
        self._own.check()
        self._there.check()
        return Block(self._own, partial(Asked, self._there), opened)


class Block(AbstractContextManager[ResultT, bool]):
    """An asynchronous block, entered and left by a thread; of `Portal.block`."""

    def __init__(
        self,
        own: OwnProcess,
        asked: Callable[[Callable[[], Awaitable[bool]]], Asked[bool]],
        opened: AbstractAsyncContextManager[ResultT, bool | None],
    ) -> None:
        self.asked = asked(self._through)
        self._own = own
        self._opened = opened
        self._entered = self.asked.also_opened = Gate()
        self._value: list[ResultT] = []
        self._error: BaseException | None = None

    def __enter__(self) -> ResultT:
        """Enter it; interrupted, it is left again."""
        self._own.check()
        self.asked.wait(self.asked.begin, self._entered)
        if self._value:
            return self._value[0]
        self.asked.result()
        raise CancelledError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Leave it, and answer what it answers; a fork leaves it alone.

        Raises:
            OpenedBeforeFork: a fork leaves it, and not by an error.
        """
        if not self._own.is_this and error is None:
            raise OpenedBeforeFork
        if self._nobody_answers:
            return False
        if kind is GeneratorExit:
            self.asked.drop()
            return False
        self._error = error
        self.asked.wait(self._leave.set, self.asked.ended)
        return self.asked.result()

    def end(self) -> None:
        """End it where an interruption kept `with` from leaving it."""
        if not self._nobody_answers:
            self.asked.drop()

    @property
    def _nobody_answers(self) -> bool:
        """Whether this is a fork, or the end of the interpreter, which finalizes what was never left."""
        return not self._own.is_this or sys.is_finalizing()

    async def _through(self) -> bool:
        self._leave = anyio.Event()
        value = await self._opened.__aenter__()
        self._value.append(value)
        self._entered.open()
        try:
            await self._leave.wait()
        except BaseException as cancelled:
            if await self._opened.__aexit__(type(cancelled), cancelled, cancelled.__traceback__):
                return True
            raise
        error = self._error
        if error is None:
            return bool(await self._opened.__aexit__(None, None, None))
        return bool(await self._opened.__aexit__(type(error), error, error.__traceback__))


def _run(started: Future[EventLoop]) -> None:
    async def until_stopped() -> None:
        async with anyio.create_task_group() as tasks:
            there = EventLoop(tasks)
            started.set_result(there)
            await there.stopped.wait()

    try:
        anyio.run(until_stopped)
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
