"""The way of blocking code to the event loop of its runtime, which runs in a thread of its own. SPEC section 17."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import copy_context
from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, TypeVarTuple, Unpack, overload

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from ...application.abandonable_call import EVENT_LOOP_NAME, Ended, Raised, Returned
from ...domain.errors import SafepointError
from .own_process import OpenedBeforeFork, OwnProcess

ResultT = TypeVar("ResultT")
ArgsT = TypeVarTuple("ArgsT")

LOOK_SECONDS: Final = 1.0
"""How often whoever waits for the event loop looks whether its thread is still there."""
_CLOSED: Final = "the runtime was closed when its `with` block was left: open it again"


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
        started: Future[_There] = Future()
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
        asked = _Asked(self._there, partial(work, *args))
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
        return Block(self._own, partial(_Asked, self._there), opened)


class _Gate:
    """What a thread waits for: opened once. Ctrl-C leaves it as it is, where it would leave a condition locked."""

    def __init__(self) -> None:
        self.is_open = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def open(self) -> None:
        """Let all through; by one thread alone."""
        if not self.is_open:
            self.is_open = True
            self._lock.release()

    def wait(self, opener: threading.Thread) -> None:
        """Wait until it is open.

        Raises:
            NobodyAnswers: whoever opens it is gone.
        """
        while not self.is_open:
            if self._lock.acquire(timeout=LOOK_SECONDS):
                self._lock.release()
            elif not opener.is_alive() and not self.is_open:
                raise NobodyAnswers(_CLOSED)


class _There:
    """The event loop, as other threads see it.

    Attributes:
        asked: what was asked and has not ended; of the event loop alone.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self.thread = threading.current_thread()
        self.tasks = tasks
        self.asked: set[_Asked[Any]] = set()
        self.stopped = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._library = [(one, value) for one, value in copy_context().items() if one.name == EVENT_LOOP_NAME]

    def stop(self, cancel_remaining: bool) -> None:
        """Take nothing more, and end what is there, or wait for it; on the event loop."""
        self.stopped.set()
        if cancel_remaining:
            self.tasks.cancel_scope.cancel()

    def check(self) -> None:
        """Do nothing where the event loop can be asked, and waited for.

        Raises:
            NobodyAnswers: it was stopped, or this is its own thread.
        """
        if threading.current_thread() is self.thread:
            raise NobodyAnswers(
                "a runtime of `open_sync` was asked from its own event loop, which would wait for itself:"
                " let what asks be a synchronous function, which runs in a thread, or take `safepoint.open`"
            )
        if self.stopped.is_set():
            raise NobodyAnswers(_CLOSED)

    def post(self, work: Callable[[], object]) -> None:
        """Have something done on the event loop, after what was posted before it; also while it waits for its end.

        Raises:
            NobodyAnswers: it has ended.
        """
        context = copy_context()
        for variable, library in self._library:
            context.run(variable.set, library)
        try:
            self._loop.call_soon_threadsafe(work, context=context)
        except RuntimeError as error:
            raise NobodyAnswers(_CLOSED) from error


class _Asked(Generic[ResultT]):
    """What one thread asked of the event loop.

    Attributes:
        ended: opened when it has ended.
        also_opened: another gate that is opened then, if it was not before.
    """

    def __init__(self, there: _There, work: Callable[[], Awaitable[ResultT] | ResultT]) -> None:
        self.thread = threading.current_thread()
        self.ended = _Gate()
        self.also_opened = self.ended
        self._there = there
        self._work = work
        self._came: Ended[ResultT] | None = None
        self._begun = False
        self._cancelled = False
        self._scope: anyio.CancelScope | None = None

    def wait(self, first: Callable[[], object], then: _Gate) -> None:
        """Have something done on the event loop, and wait for what it opens.

        Whatever interrupts that, also before the event loop has heard of it, ends the whole.
        """
        try:
            self._there.post(first)
            then.wait(self._there.thread)
        except BaseException:
            self.interrupt()
            raise

    def result(self) -> ResultT:
        """What came of it, once it has ended.

        Raises:
            CancelledError: it was cancelled.
        """
        match self._came:
            case None:
                raise CancelledError
            case Raised(error=error):
                raise error
            case Returned(value=value):
                result: ResultT = value
                return result

    def interrupt(self) -> None:
        """Cancel it where it has not ended, and wait for its end."""
        if not self.ended.is_open:
            self._there.post(self._cancel)
            self.ended.wait(self._there.thread)

    def drop(self) -> None:
        """As `interrupt`; another thread waits for nothing: garbage is collected in any, the event loop's too."""
        if self.thread is threading.current_thread():
            self.interrupt()
        elif not self.ended.is_open:
            threading.Thread(target=self.interrupt, name="safepoint drop", daemon=True).start()

    def begin(self) -> None:
        """Begin it, on the event loop."""
        self._begun = True
        self._there.asked.add(self)
        self._there.tasks.start_soon(self._run)

    def _cancel(self) -> None:
        self._cancelled = True
        if not self._begun:  # what comes after this would have been posted after it: it was never asked
            self._end()
        elif self._scope is not None:
            self._scope.cancel()

    async def _run(self) -> None:
        try:
            with anyio.CancelScope() as self._scope:
                if self._cancelled:
                    self._scope.cancel()
                came = self._work()
                result: ResultT = await came if isawaitable(came) else came
                self._came = Returned(result)
        except get_cancelled_exc_class():
            raise
        except BaseException as error:
            self._came = Raised(error)
            if not isinstance(error, Exception):
                raise  # it ends the event loop
        finally:
            self._there.asked.discard(self)
            self._end()

    def _end(self) -> None:
        self.ended.open()
        self.also_opened.open()


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
        self._entered = self.asked.also_opened = _Gate()
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


def _run(started: Future[_There]) -> None:
    async def until_stopped() -> None:
        async with anyio.create_task_group() as tasks:
            there = _There(tasks)
            started.set_result(there)
            await there.stopped.wait()

    try:
        anyio.run(until_stopped)
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
