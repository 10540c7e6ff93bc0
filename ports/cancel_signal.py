"""How running work learns that it should stop. A `threading.Event` is one."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol


class CancelSignal(Protocol):
    """Set once, never cleared; asked from any thread."""

    @abstractmethod
    def is_set(self) -> bool:
        """True once the work should stop."""
