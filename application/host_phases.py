"""How far a host's life has come, and what it therefore refuses. SPEC section 15."""

from __future__ import annotations

from enum import StrEnum

from ..domain.errors import SafepointError

CANCEL_SECONDS = 15.0
"""How long work that was cancelled is waited for: longer than live tools are, after a stop."""


class Phase(StrEnum):
    """How far a host's life has come; it only goes on."""

    OPENING = "opening"
    READY = "ready"
    DRAINING = "draining"
    CLOSED = "closed"


class HostNotReady(SafepointError):
    """The host takes no work; nothing was begun.

    Attributes:
        phase: opening, draining or closed.
    """

    def __init__(self, phase: Phase) -> None:
        super().__init__(f"the host is {phase}: it takes no work")
        self.phase = phase


class HostClosedMeanwhile(SafepointError):
    """The host was closed and waited no longer: the run is interrupted where it was, and repair closes its record."""

    def __init__(self) -> None:
        super().__init__("the host was closed before the run had ended; it is interrupted, and can be resumed")
