"""Fibers: threads of which exactly one runs at a time, from one point to the next, in the order that a schedule says.

A fiber stands at a *point* before something that others can see (a commit, a look, an effect); it *waits* for something
within its own process, such as a lock, and goes on as soon as that has come about.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

import sniffio

STACK_BYTES = 512 * 1024
LOOP_NAME = "stepped"
_idle: list[_Worker] = []


class Stopped(BaseException):
    """The process of this fiber was killed, or the schedule ends here; nothing that it does counts any more."""


class Fiber:
    """One thread of one process.

    Attributes:
        point: what it is about to do, None while it waits for its own process or has ended.
        result, error: what its work came to.
    """

    def __init__(self, threads: Threads, process: str, name: str, work: Callable[[], object]) -> None:
        self.threads = threads
        self.process = process
        self.name = name
        self.work = work
        self.point: str | None = None
        self.ready: Callable[[], bool] | None = None
        self.ended = False
        self.stopped = False
        self.result: object = None
        self.error: BaseException | None = None
        self.worker: _Worker | None = None

    def at(self, point: str) -> None:
        """Stand here until the schedule lets it go on. Called by the fiber itself."""
        if self.stopped:
            raise Stopped
        self.point = point
        self._yield()
        self.point = None

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait for something in this process. Called by the fiber itself."""
        while not ready():
            if self.stopped:
                raise Stopped
            self.ready = ready
            self._yield()
            self.ready = None

    def _yield(self) -> None:
        assert self.worker is not None
        self.worker.back.release()
        self.worker.go.acquire()
        if self.stopped:
            raise Stopped


class Threads:
    """The fibers of one schedule."""

    def __init__(self) -> None:
        self.fibers: list[Fiber] = []

    def start(self, process: str, work: Callable[[], object], name: str = "main") -> Fiber:
        """Make a fiber; it runs when the schedule lets it."""
        fiber = Fiber(self, process, name, work)
        self.fibers.append(fiber)
        return fiber

    def go_on(self, fiber: Fiber) -> None:
        """Let a fiber run to its next point, wait or end, and then all that waits for what it did."""
        _run(fiber)
        self.settle()

    def settle(self) -> None:
        """Let everything run that waits for nothing that others can see."""
        moved = True
        while moved:
            moved = False
            for fiber in list(self.fibers):
                if not fiber.ended and fiber.point is None and (fiber.ready is None or fiber.ready()):
                    _run(fiber)
                    moved = True

    def standing(self) -> list[Fiber]:
        """The fibers that stand at a point, in the order of their start."""
        return [fiber for fiber in self.fibers if fiber.point is not None]

    def stop(self, process: str | None = None) -> None:
        """Kill a process, or everything: its fibers unwind, and whatever they still try to do is not done."""
        for fiber in list(self.fibers):
            if process is None or fiber.process == process:
                fiber.stopped = True
        for fiber in list(self.fibers):
            if fiber.stopped and not fiber.ended:
                fiber.point = fiber.ready = None
                _run(fiber)
                assert fiber.ended, f"{fiber.process}/{fiber.name} goes on after its death"


class _Worker:
    """A thread that carries one fiber after another."""

    def __init__(self) -> None:
        self.go, self.back = threading.Lock(), threading.Lock()
        self.go.acquire()
        self.back.acquire()
        self.fiber: Fiber | None = None
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> NoReturn:
        sniffio.thread_local.name = LOOP_NAME
        while True:
            self.go.acquire()
            fiber = self.fiber
            assert fiber is not None
            _here.fiber = fiber
            try:
                if not fiber.stopped:
                    fiber.result = fiber.work()
            except BaseException as error:  # noqa: BLE001 (the schedule looks at it)
                fiber.error = error
            fiber.ended = True
            _here.fiber = None
            self.back.release()


class _Here(threading.local):
    fiber: Fiber | None = None


_here = _Here()


def running() -> Fiber | None:
    """The fiber of this thread; None in a thread that belongs to no schedule."""
    return _here.fiber


def _run(fiber: Fiber) -> None:
    worker = fiber.worker
    if worker is None:
        worker = fiber.worker = _idle.pop() if _idle else _Worker()
        worker.fiber = fiber
    worker.go.release()
    worker.back.acquire()
    if fiber.ended:
        worker.fiber = fiber.worker = None
        _idle.append(worker)


class Lock:
    """In place of `threading.Lock` where a fiber may hold it at a point: another one of the process waits."""

    def __init__(self) -> None:
        self._held = False
        self._wanted = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        fiber = running()
        if self._held and not blocking:
            return False
        if fiber is not None:
            if self._wanted:
                fiber.at("lock")  # whoever waits for it may come first
            self._wanted += 1
            try:
                fiber.wait(lambda: not self._held)
            finally:
                self._wanted -= 1
        assert not self._held
        self._held = True
        return True

    def release(self) -> None:
        self._held = False

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class Thread:
    """In place of `threading.Thread`: the work is done where it is started, on the fiber that starts it."""

    def __init__(self, target: Callable[..., object], args: tuple[object, ...] = (), **_: object) -> None:
        self._target = target
        self._args = args

    def start(self) -> None:
        name, sniffio.thread_local.name = sniffio.thread_local.name, None
        try:
            self._target(*self._args)
        finally:
            sniffio.thread_local.name = name

    def join(self, timeout: float | None = None) -> None:
        """It has ended."""


class SteppedThreading:
    """In place of the module `threading`, in the modules of the application that hold locks across a commit."""

    Lock = Lock
    Thread = Thread
    Event = threading.Event


with suppress(ValueError, RuntimeError):  # fibers are many, and none recurses deeply
    threading.stack_size(STACK_BYTES)
