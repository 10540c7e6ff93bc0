"""An event loop as the threads see it that ask it, wait for it, and may be interrupted at any line. ADR 0094."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from contextvars import copy_context
from inspect import isawaitable
from typing import Any, Final, Generic, TypeVar

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from ...application.abandonable_call import EVENT_LOOP_NAME, Ended, Raised, Returned
from ...domain.errors import SafepointError

ResultT = TypeVar("ResultT")

LOOK_SECONDS: Final = 1.0
"""How often whoever waits for the event loop looks whether its thread is still there."""
_CLOSED: Final = "the runtime was closed when its `with` block was left: open it again"


class NobodyAnswers(SafepointError, RuntimeError):
    """A runtime cannot be asked by blocking code as it is, or from where it is asked: nothing was done."""


class Gate:
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


class EventLoop:
    """The event loop, as other threads see it.

    Attributes:
        asked: what was asked and has not ended; of the event loop alone.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self.thread = threading.current_thread()
        self.tasks = tasks
        self.asked: set[Asked[Any]] = set()
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


class Asked(Generic[ResultT]):
    """What one thread asked of the event loop.

    Attributes:
        ended: opened when it has ended.
        also_opened: another gate that is opened then, if it was not before.
    """

    def __init__(self, there: EventLoop, work: Callable[[], Awaitable[ResultT] | ResultT]) -> None:
        self.thread = threading.current_thread()
        self.ended = Gate()
        self.also_opened = self.ended
        self._there = there
        self._work = work
        self._came: Ended[ResultT] | None = None
        self._begun = False
        self._cancelled = False
        self._scope: anyio.CancelScope | None = None

    def wait(self, first: Callable[[], object], then: Gate) -> None:
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
