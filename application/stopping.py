"""How a run is told to stop, and by whom: a signal for tools, and the bound that live work is given. SPEC section 7."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

BOUND_SECONDS = 10.0
OBSERVE_SECONDS_MAX = 60.0
"""How long one look of a reconciler at one operation may take by default."""
NOBODY_NAMED = "the host"


class Followers:
    """Who is told that something should stop; each may be told twice. Thread-safe."""

    def __init__(self) -> None:
        self._told: dict[object, Callable[[], None]] = {}

    @contextmanager
    def including(self, tell: Callable[[], None], *, now: Callable[[], bool]) -> Iterator[None]:
        """Tell this one, too, inside the block, and at once where it should stop `now`."""
        key = object()
        self._told[key] = tell
        try:
            if now():
                tell()
            yield
        finally:
            del self._told[key]

    def tell(self) -> None:
        """Tell everybody."""
        for tell in list(self._told.values()):
            tell()


class Stopping:
    """Set once by a person or the host; watched by the loop and by live calls. `is_set` may be asked from any thread.

    Args:
        bound_seconds: how long live tools are waited for, 0 or more.

    Attributes:
        by: who asked first.
        followers: are told what live work is told.
    """

    def __init__(self, *, bound_seconds: float = BOUND_SECONDS) -> None:
        self.bound_seconds = bound_seconds
        self.by = NOBODY_NAMED
        self._asked = False
        self._set = threading.Event()
        self._scopes: dict[anyio.CancelScope, Callable[[], float]] = {}
        self.followers = Followers()

    def is_set(self) -> bool:
        """True once the run should stop."""
        return self._set.is_set()

    def ask(self, by: str) -> bool:
        """Be the one who stops the run; called on its event loop. False when somebody was before.

        Whoever was first records it and then calls `request`.
        """
        if self._asked:
            return False
        self._asked = True
        self.by = by
        return True

    def request(self) -> None:
        """Tell the loop and live work to stop; called on their event loop. Idempotent."""
        if self._set.is_set():
            return
        self._set.set()
        for scope, deadline in self._scopes.items():
            scope.deadline = min(scope.deadline, deadline())
        self.followers.tell()

    def at_once(self, timeout_seconds: float | None = None) -> anyio.CancelScope:
        """Make a scope that is cancelled as soon as the run should stop, or after a time-out: for waiting."""
        return self._watched(anyio.current_time, timeout_seconds)

    def after_bound(self, timeout_seconds: float | None = None) -> anyio.CancelScope:
        """Make a scope that is cancelled when the bound for live work has passed, or after a time-out: for work."""
        return self._watched(lambda: anyio.current_time() + self.bound_seconds, timeout_seconds)

    def _watched(self, deadline: Callable[[], float], timeout_seconds: float | None) -> anyio.CancelScope:
        scope = anyio.CancelScope()
        if timeout_seconds is not None:
            scope.deadline = anyio.current_time() + timeout_seconds
        if self.is_set():
            scope.deadline = min(scope.deadline, deadline())
        self._scopes[scope] = deadline
        return scope

    def done(self, scope: anyio.CancelScope) -> None:
        """Stop watching a scope."""
        self._scopes.pop(scope, None)


class CallCancel:
    """What one call asks whether it should stop: the run's stop, or its own time-out."""

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        self._set = threading.Event()
        self._followers = Followers()

    def is_set(self) -> bool:
        """True once the call should stop."""
        return self._set.is_set() or self._stopping.is_set()

    def set(self) -> None:
        """Ask this call alone to stop."""
        self._set.set()
        self._followers.tell()

    @property
    def by(self) -> str:
        """Who stops it."""
        return self._stopping.by

    @contextmanager
    def followed(self, tell: Callable[[], None]) -> Iterator[None]:
        """Tell somebody inside the block that the call should stop, at once where that is so already.

        Args:
            tell: may be called twice, and from any thread; it neither waits nor raises.
        """
        with (
            self._followers.including(tell, now=self._set.is_set),
            self._stopping.followers.including(tell, now=self._stopping.is_set),
        ):
            yield
