"""The operations of which a task, a thread or an uncommitted result is left in this process. SPEC section 15."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..domain.identifiers import OperationId, SessionId


class LiveOperations:
    """Operations that this process cannot call over yet, with their sessions. Thread-safe.

    Attributes:
        any_began: whether this process ever began to deliver one.
    """

    def __init__(self) -> None:
        self.any_began = False
        self._lock = threading.Lock()
        self._live: dict[OperationId, SessionId] = {}
        self._when_over: dict[SessionId, Callable[[], None]] = {}
        self._when_nothing_lives: Callable[[], None] | None = None

    def began(self, operation_id: OperationId, session_id: SessionId) -> None:
        """T1, or the start of another delivery, is about to be written, so the implementation may be called."""
        with self._lock:
            self.any_began = True
            self._live[operation_id] = session_id

    def ended(self, operation_id: OperationId) -> None:
        """Nothing of it is left here: it returned, and its outcome is committed or given up. Idempotent."""
        with self._lock:
            session_id = self._live.pop(operation_id, None)
            over = session_id is not None and session_id not in self._live.values()
            then = self._when_over.pop(session_id, None) if session_id is not None and over else None
            last = None if self._live else self._when_nothing_lives
        if then is not None:
            then()
        if last is not None:
            last()

    def of(self, session_id: SessionId) -> bool:
        """True while something of a session's operations is left."""
        with self._lock:
            return session_id in self._live.values()

    def when_over(self, session_id: SessionId, then: Callable[[], None]) -> None:
        """Call this once nothing of a session is left: now, or later from the thread that was the last.

        Args:
            then: must not raise; replaces what was asked for before.
        """
        with self._lock:
            if session_id in self._live.values():
                self._when_over[session_id] = then
                return
        then()

    def when_nothing_lives(self, then: Callable[[], None]) -> None:
        """Call this as soon as nothing of any session is left: now, or later from the thread that was the last.

        Args:
            then: must not raise, and may be called more than once; replaces what was asked for before.
        """
        with self._lock:
            self._when_nothing_lives = then
            if self._live:
                return
        then()

    def __contains__(self, operation_id: OperationId) -> bool:
        with self._lock:
            return operation_id in self._live

    def __len__(self) -> int:
        with self._lock:
            return len(self._live)
