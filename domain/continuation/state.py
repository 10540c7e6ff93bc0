"""The continuation aggregate: claimed, started, ended; replayed from two runs, without a stream. SPEC section 3."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..events.run import ContinuationStarted, RunClaimed, RunEnded, RunOpened
from ..run.state import Run


class Progress(StrEnum):
    """How far a continuation came."""

    UNCLAIMED = "unclaimed"
    CLAIMED = "claimed"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Continuation:
    """The claim in the source, and the first and terminal events of the target.

    `started` is what stands first there: in a sound store it is the start that the claim froze.
    """

    claimed: RunClaimed | None
    started: RunOpened | ContinuationStarted | None
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
    if source.claimed is None:
        return Continuation(None, None, None)
    return Continuation(source.claimed, target.opening, target.ended)
