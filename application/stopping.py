"""How a run is told to stop, and by whom: a cancel signal for tools, and the bound that live work is given. SPEC section 7."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio


class Stopping:
    """Set once by a person or the host; watched by the loop and by live calls. `is_set` may be asked from any thread.

    Args:
        bound_seconds: how long live tools are waited for, 0 or more.
    """

    def __init__(self, *, bound_seconds: float = 10.0) -> None:
        self.bound_seconds = bound_seconds
        self.by: str | None = None
        self._set = threading.Event()
        self._scopes: dict[anyio.CancelScope, Callable[[], float]] = {}

    def is_set(self) -> bool:
        """True once the run should stop."""
        return self._set.is_set()

    def request(self, by: str) -> bool:
        """Ask the run to stop; called on its event loop. False when it was asked before."""
        if self._set.is_set():
            return False
        self.by = by
        self._set.set()
        for scope, deadline in self._scopes.items():
            scope.deadline = min(scope.deadline, deadline())
        return True

    def at_once(self) -> anyio.CancelScope:
        """A scope that is cancelled as soon as the run should stop: for waiting on a model."""
        return self._watched(anyio.current_time)

    def after_bound(self, timeout_seconds: float | None) -> anyio.CancelScope:
        """A scope that is cancelled when the bound for live work has passed, or its own time-out."""
        scope = self._watched(lambda: anyio.current_time() + self.bound_seconds)
        if timeout_seconds is not None:
            scope.deadline = min(scope.deadline, anyio.current_time() + timeout_seconds)
        return scope

    def _watched(self, deadline: Callable[[], float]) -> anyio.CancelScope:
        scope = anyio.CancelScope()
        if self.is_set():
            scope.deadline = deadline()
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

    def is_set(self) -> bool:
        """True once the call should stop."""
        return self._set.is_set() or self._stopping.is_set()

    def set(self) -> None:
        """Ask this call alone to stop."""
        self._set.set()
