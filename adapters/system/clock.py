"""The host's clocks."""

from __future__ import annotations

import time

from ...domain.events.event import Timestamp
from ...ports.clock import Clock

_NANOSECONDS = 1_000_000_000


class SystemClock(Clock):
    """Wall time and steady time of this host."""

    def __init__(self) -> None:
        self._second: tuple[int, str] | None = None  # the text of the second that was asked for last

    def now(self) -> Timestamp:
        """Wall time in UTC."""
        second, nanoseconds = divmod(time.time_ns(), _NANOSECONDS)
        known = self._second
        if known is None or known[0] != second:
            known = self._second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        return f"{known[1]}.{nanoseconds // 1000:06d}Z"

    def monotonic_seconds(self) -> float:
        """Seconds since an unknown moment."""
        return time.monotonic()
