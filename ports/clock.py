"""What time it is. SPEC R16: the domain reads no clock, it is told."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from ..domain.events.event import Timestamp


class Clock(Protocol):
    """Wall time for the record, and a steady one for bounds. Methods may be called from several threads."""

    @abstractmethod
    def now(self) -> Timestamp:
        """Wall time in UTC as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.

        It may jump either way: nothing is decided on its order.
        """

    @abstractmethod
    def monotonic_seconds(self) -> float:
        """Seconds since an unknown moment; never goes back.

        Only differences mean something, and only in one process.
        """
