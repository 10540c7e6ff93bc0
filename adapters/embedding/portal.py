"""The way of blocking code to the event loop of its runtime, which runs in a thread of its own. SPEC section 17."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack, overload

import anyio
from anyio import get_cancelled_exc_class
from anyio.from_thread import BlockingPortal

from ...domain.errors import SafepointError
from .own_process import OpenedBeforeFork, OwnProcess

ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT")
ArgsT = TypeVarTuple("ArgsT")


class NobodyAnswers(SafepointError, RuntimeError):
    """A runtime cannot be asked by blocking code as it is, or from where it is asked: nothing was done."""


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
        self._open: set[_Asked[Any]] = set()
        started: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(target=_run, args=[started], name="safepoint", daemon=True)
        self._thread.start()
        self._portal = started.result()

    def close(self, *, cancel_remaining: bool = False) -> None:
        """End the event loop and its thread.

        Args:
            cancel_remaining: what still runs there is cancelled; else what other threads have there is waited for.
        """
        self._own.check()
        self.end_left()
        self._portal.call(self._portal.stop, cancel_remaining)
        self._thread.join()

    def end_left(self, *, but: Block[Any] | None = None) -> None:
        """Cancel what nobody will leave any more: what this thread has there, or one that is gone; wait for its end.

        Of this thread that is a block which an interruption at an unlucky instant kept it from leaving.

        Args:
            but: a block that this thread has still to leave.
        """
        self._own.check()
        for asked in self._portal.call(self._open.copy):
            left = asked.thread is threading.current_thread() or not asked.thread.is_alive()
            if left and (but is None or asked is not but.asked):
                asked.interrupt()

    @property
    def is_forked(self) -> bool:
        """Whether this is a fork of the process that opened it."""
        return not self._own.is_this

    def _check(self) -> None:
        """Do nothing where the event loop can be asked, and waited for."""
        self._own.check()
        if threading.current_thread() is self._thread:
            raise NobodyAnswers(
                "a runtime of `open_sync` was asked from its own event loop, which would wait for itself:"
                " let what asks be a synchronous function, which runs in a thread, or take `safepoint.open`"
            )
        if not self._thread.is_alive():
            raise NobodyAnswers("the runtime was closed when its `with` block was left: open it again")

    @overload
    def call(self, work: Callable[[Unpack[ArgsT]], Awaitable[ResultT]], *args: *ArgsT) -> ResultT: ...

    @overload
    def call(self, work: Callable[[Unpack[ArgsT]], ResultT], *args: *ArgsT) -> ResultT: ...

    def call(self, work: Callable[[Unpack[ArgsT]], Awaitable[ResultT] | ResultT], *args: *ArgsT) -> ResultT:
        """Call it there, and wait for it where it is asynchronous."""
        self._check()
        asked = _Asked(self._portal, self._open, partial(work, *args))
        return asked.wait(asked.run, asked.result)

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
        self._check()
        return Block(self._own, partial(_Asked, self._portal, self._open), opened)


class _Asked(Generic[ResultT]):
    """What one thread asked of the event loop.

    Args:
        open_there: what is asked and has not ended; of the event loop alone.

    Attributes:
        thread: which one.
        result: what came of it.
    """

    def __init__(
        self,
        portal: BlockingPortal,
        open_there: set[_Asked[Any]],
        work: Callable[[], Awaitable[ResultT] | ResultT],
    ) -> None:
        self.thread = threading.current_thread()
        self.result: Future[ResultT] = Future()
        self._portal = portal
        self._open = open_there
        self._work = work
        self._scope: anyio.CancelScope | None = None
        self._ended = threading.Event()

    def wait(self, first: Callable[[], object], then: Future[AnswerT]) -> AnswerT:
        """Have something done on the event loop, and wait for what comes of it.

        Whatever interrupts that, also before the event loop has heard of it, ends the whole.
        """
        try:
            self._portal.start_task_soon(first)
            return then.result()
        except BaseException:
            self.interrupt()
            raise

    def interrupt(self) -> None:
        """Cancel it where it has not ended, and wait for its end."""
        if not self._ended.is_set():
            self._portal.start_task_soon(self._cancel)
            self._ended.wait()

    def drop(self) -> None:
        """As `interrupt`; another thread waits for nothing: garbage is collected in any, the event loop's too."""
        if self.thread is threading.current_thread():
            self.interrupt()
        elif not self._ended.is_set():
            threading.Thread(target=self.interrupt, name="safepoint drop", daemon=True).start()

    def _cancel(self) -> None:
        if self._scope is None:  # what comes after this is begun after it: it was never asked
            self._ended.set()
        else:
            self._scope.cancel()

    async def run(self) -> None:
        """Do it, on the event loop; that it has ended is said before what came of it."""
        self._open.add(self)
        try:
            with anyio.CancelScope() as self._scope:
                came = self._work()
                result: ResultT = await came if isawaitable(came) else came
                self._end()
                self.result.set_result(result)
        except get_cancelled_exc_class():
            raise
        except BaseException as error:
            self._end()
            self.result.set_exception(error)
            if not isinstance(error, Exception):
                raise  # it ends the event loop
        finally:
            self._end()
            self.result.cancel()

    def _end(self) -> None:
        self._open.discard(self)
        self._ended.set()


class Block(AbstractContextManager[ResultT, bool]):
    """An asynchronous block, entered and left by a thread; of `Portal.block`."""

    def __init__(
        self,
        own: OwnProcess,
        asked: Callable[[Callable[[], Awaitable[bool]]], _Asked[bool]],
        opened: AbstractAsyncContextManager[ResultT, bool | None],
    ) -> None:
        self.asked = asked(self._through)
        self._own = own
        self._opened = opened
        self._entered: Future[ResultT] = Future()
        self._error: BaseException | None = None

    def __enter__(self) -> ResultT:
        """Enter it; interrupted, it is left again."""
        self._own.check()
        self.asked.result.add_done_callback(self._ended)
        return self.asked.wait(self.asked.run, self._entered)

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
        return self.asked.wait(self._leave.set, self.asked.result)

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
        self._entered.set_result(value)
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

    def _ended(self, ended: Future[bool]) -> None:
        """Tell whoever waits to enter it that it has ended before that."""
        if self._entered.done():
            return
        error = None if ended.cancelled() else ended.exception()
        if error is None:
            self._entered.cancel()
        else:
            self._entered.set_exception(error)


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
