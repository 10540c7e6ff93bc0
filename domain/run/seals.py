"""Whether a run is open, ended or claimed: asked before anything else about a command. SPEC section 7, order."""

from __future__ import annotations

from ..decision import Refusal, misfit
from ..reasons import WriteRefusal
from .state import Run


def sealed(run: Run) -> Refusal | None:
    """Refuse what needs an open run: not begun, claimed for good, or ended (a normal end of a race, F3)."""
    if run.opening is None:
        return misfit("the run was never opened")
    if run.claimed is not None:
        return claimed(run)
    if run.ended is not None:
        return Refusal(WriteRefusal.RUN_SEALED, f"the run has ended ({run.ended.status.value})")
    return None


def not_ended(run: Run) -> Refusal | None:
    """Refuse what may only follow a terminal event: claimed for good, or still open."""
    if run.claimed is not None:
        return claimed(run)
    return misfit("the run has not ended") if run.ended is None else None


def claimed(run: Run) -> Refusal | None:
    """Refuse what a claim excludes."""
    if run.claimed is None:
        return None
    return Refusal(WriteRefusal.RUN_CLAIMED, f"the run was claimed by continuation {run.claimed.target.run_id}")
