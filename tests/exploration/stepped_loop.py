"""An event loop for fibers: every task is a fiber, and nothing happens between two points. A backend for anyio.

The application runs on it as it is. Time stands still here: no deadline passes, and nothing is cancelled.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import pytest
from anyio._core import _eventloop

from safepoint.application import abandonable_call, caller_queue, ledger, ownership

from .fibers import LOOP_NAME, Fiber, SteppedThreading, running

ResultT = TypeVar("ResultT")


class Loop:
    """What belongs to one event loop: the process that it runs in."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.tasks = 0


_loops: dict[tuple[int, str], Loop] = {}


def _here() -> Fiber:
    fiber = running()
    assert fiber is not None, "only a fiber runs on this loop"
    return fiber


def complete(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end on this fiber."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("ResultT", end.value)
    raise AssertionError("it awaits what is not of this loop")


class _Scope:
    def __init__(self, deadline: float = math.inf) -> None:
        self.deadline = deadline
        self.cancel_called = self.cancelled_caught = self.shield = False

    def cancel(self, reason: str | None = None) -> None:
        raise NotImplementedError("nothing is cancelled here")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Nothing was cancelled."""


class _Event:
    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    async def wait(self) -> None:
        _here().wait(self.is_set)


class _Limiter:
    def __init__(self, total_tokens: float) -> None:
        self._left = total_tokens

    async def __aenter__(self) -> None:
        _here().wait(lambda: self._left > 0)
        self._left -= 1

    async def __aexit__(self, *_: object) -> None:
        self._left += 1


class _Group:
    def __init__(self) -> None:
        self.cancel_scope = _Scope()
        self._children: list[Fiber] = []

    async def __aenter__(self) -> Self:
        return self

    def start_soon(self, func: Callable[..., Coroutine[Any, Any, object]], *args: object, name: object = None) -> None:
        parent = _here()
        number = Backend.current_token().tasks = Backend.current_token().tasks + 1
        self._children.append(
            parent.threads.start(parent.process, lambda: complete(func(*args)), f"{parent.name}.{number}")
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        _here().wait(lambda: all(child.ended for child in self._children))
        errors = [child.error for child in self._children if child.error is not None]
        if errors:
            raise BaseExceptionGroup("tasks failed", errors)


class Backend:
    """What anyio asks of an event loop, as far as the application does."""

    @classmethod
    def current_token(cls) -> Loop:
        fiber = _here()
        return _loops.setdefault((id(fiber.threads), fiber.process), Loop(fiber.process))

    @classmethod
    def current_time(cls) -> float:
        return 0.0

    @classmethod
    def cancelled_exception_class(cls) -> type[BaseException]:
        return _NeverRaised

    @classmethod
    async def checkpoint(cls) -> None:
        """Another task of this process may come first."""
        _here().at("checkpoint")

    @classmethod
    async def checkpoint_if_cancelled(cls) -> None:
        """It is not."""

    @classmethod
    async def sleep(cls, delay: float) -> None:
        _here().at("sleep")

    @classmethod
    def create_cancel_scope(cls, *, deadline: float = math.inf, shield: bool = False) -> _Scope:
        return _Scope(deadline)

    @classmethod
    def current_effective_deadline(cls) -> float:
        return math.inf

    @classmethod
    def create_task_group(cls) -> _Group:
        return _Group()

    @classmethod
    def create_event(cls) -> _Event:
        return _Event()

    @classmethod
    def create_capacity_limiter(cls, total_tokens: float) -> _Limiter:
        return _Limiter(total_tokens)

    @classmethod
    async def run_sync_in_worker_thread(
        cls,
        func: Callable[..., ResultT],
        args: tuple[object, ...],
        abandon_on_cancel: bool = False,
        limiter: _Limiter | None = None,
    ) -> ResultT:
        if limiter is None:
            return func(*args)
        async with limiter:
            return func(*args)

    @classmethod
    def run_sync_from_thread(cls, func: Callable[..., ResultT], args: tuple[object, ...], token: object) -> ResultT:
        return func(*args)

    @classmethod
    def run_async_from_thread(
        cls, func: Callable[..., Awaitable[ResultT]], args: tuple[object, ...], token: object
    ) -> ResultT:
        return complete(cast("Coroutine[Any, Any, ResultT]", func(*args)))


class _NeverRaised(BaseException):
    """Nothing is cancelled here."""


@contextmanager
def stepped() -> Iterator[None]:
    """Let the application run on fibers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cast("dict[str, object]", _eventloop.loaded_backends), LOOP_NAME, Backend)
        for module in (abandonable_call, caller_queue, ledger, ownership):
            patch.setattr(module, "threading", SteppedThreading)
        yield
        _loops.clear()
