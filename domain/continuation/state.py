"""The continuation aggregate: claimed, started, ended; replayed from two runs, without a stream. SPEC section 3."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..events.run import ContinuationStarted, RunClaimed, RunEnded
from ..run.state import Run


class Progress(StrEnum):
    """How far a continuation came."""

    UNCLAIMED = "unclaimed"
    CLAIMED = "claimed"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Continuation:
    """The claim in the source, and the first and terminal events of the target."""

    claimed: RunClaimed | None
    started: ContinuationStarted | None
    ended: RunEnded | None

    @property
    def progress(self) -> Progress:
        """The furthest point that a fact proves."""
        if self.ended is not None:
            return Progress.ENDED
        if self.started is not None:
            return Progress.STARTED
        return Progress.UNCLAIMED if self.claimed is None else Progress.CLAIMED


def continuation_of(source: Run, target: Run) -> Continuation:
    """Replay a continuation from the run that was claimed and the run that it admitted."""
    started = target.opening if isinstance(target.opening, ContinuationStarted) else None
    return Continuation(source.claimed, started, target.ended if started is not None else None)
