"""The host's clocks."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from ...domain.events.event import Timestamp
from ...ports.clock import Clock


class SystemClock(Clock):
    """Wall time and steady time of this host."""

    def now(self) -> Timestamp:
        """Wall time in UTC."""
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def monotonic_seconds(self) -> float:
        """Seconds since an unknown moment."""
        return time.monotonic()
