"""A clock that stands still until it is told."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from ...domain.events.event import Timestamp
from ...ports.clock import Clock

_START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock(Clock):
    """Starts at 2030-01-01T00:00:00.000000Z and at 0 seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wall = _START
        self._steady_seconds = 0.0

    def now(self) -> Timestamp:
        """The time that was set."""
        with self._lock:
            return self._wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic_seconds(self) -> float:
        """The seconds that were passed."""
        with self._lock:
            return self._steady_seconds

    def advance(self, seconds: float) -> None:
        """Let time pass, at least 0 seconds of it."""
        if seconds < 0:
            raise ValueError("steady time does not go back; use jump_wall")
        with self._lock:
            self._wall += timedelta(seconds=seconds)
            self._steady_seconds += seconds

    def jump_wall(self, seconds: float) -> None:
        """Set wall time forward or back without any time passing, as an administrator may."""
        with self._lock:
            self._wall += timedelta(seconds=seconds)
