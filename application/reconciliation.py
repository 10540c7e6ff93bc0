"""What becomes of an operation without outcome when the world is looked at again. SPEC section 10."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ..domain.events.tool import Observation, RecoveryMode
from ..domain.identifiers import OperationId, RunId, SessionId
from ..domain.reasons import RecoveryReason
from ..ports.supervised import ProcessInfo
from .repair_session import Repaired


class Left(StrEnum):
    """Why an operation was left exactly as it was. The values of SPEC section 22 mean what they mean there."""

    MAY_BE_RUNNING = "effect_may_be_running"
    """It is not over."""
    COULD_NOT_LOOK = "could_not_look"
    """Whether it is over could not be seen; a person may say so."""
    RUN_OPEN = "run_open"
    """Its run has not ended."""
    RUN_UNREADABLE = "source_run_unreadable"
    FOREIGN = "foreign_run"
    """The store cannot vouch that its outcome is missing, so nothing is delivered again."""
    NOT_RECONCILABLE = "not_indeterminate"
    """It has its outcome, or was never dispatched."""
    PARKED = "parked"
    """It was looked at before, which proved nothing: only a person can say more. The detail is the reason."""
    REPEATED = "repeated_since"
    """A later call took its place: that one's outcome counts."""
    NO_RECONCILER = "no_reconciler"
    """Nobody here knows its contract."""
    NOT_SEEN = "not_seen_now"
    """Whoever knows could not be asked now."""
    RECONCILER_FAILED = "reconciler_failed"
    """Who knows its contract could not look, or gave no answer that settles anything."""
    RECONCILER_TIMED_OUT = "reconciler_timed_out"
    """Who knows its contract did not answer in the time that it is given; whatever it says later is not heard."""
    TOOL_CHANGED = "tool_catalog_mismatch"
    """The tool is not here, or promises something else than it did at T1."""
    OTHER_WORKSPACE = "workspace_identity_mismatch"
    COPY_AMBIGUOUS = "workspace_copy_ambiguous"
    """The folder is a copy of the one that its run worked in, or that one of this."""
    WORKSPACE_UNSEEN = "safety_observation_unavailable"
    """The folder is not there, or could not be looked at."""
    NOT_DELIVERED = "not_delivered"
    """A delivery was tried, and what it came to does not say what the first one did."""
    STOPPED = "stopped"
    """Somebody stopped before it was done."""
    HANDLE_RUNNING = "handle_running"
    """What it started has not come to its end."""
    CHILD_INTERRUPTED = "child_run_interrupted"
    """The run that it started was interrupted, and can be resumed: its end is then the outcome."""
    HANDLE_LOST = "handle_lost"
    """What it started came to no end that will ever be seen: a person says what came of it."""
    MOVED_ON = "moved_on"
    """Others wrote to its run all the while."""


class LeftAlone(NamedTuple):
    """Nothing was settled, and why.

    Attributes:
        detail: for people, without content of the run.
        processes: what may still run.
        folders: those of which one is a copy; the last is the one that was named.
        child: the session of the child run that was interrupted.
    """

    why: Left
    detail: str = ""
    processes: tuple[ProcessInfo, ...] = ()
    folders: tuple[str, ...] = ()
    child: SessionId | None = None


class Completed(NamedTuple):
    """The operation has its outcome now. `observation` says how that is known."""

    observation: Observation
    is_error: bool
    detail: str = ""


class NowParked(NamedTuple):
    """What was seen proves nothing, and only a person can say more."""

    observation: Observation
    reason: RecoveryReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OperationReconciled:
    """One operation, and what became of it."""

    operation_id: OperationId
    run_id: RunId
    tool_name: str
    mode: RecoveryMode | None
    became: Completed | NowParked | LeftAlone


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What became of a session's operations, in the order of their runs and dispatches.

    Attributes:
        repaired: what was closed before.
    """

    session_id: SessionId
    operations: tuple[OperationReconciled, ...]
    repaired: Repaired | None = None

    @property
    def settled(self) -> bool:
        """True when nothing that was looked at is still open or parked."""
        return all(isinstance(one.became, Completed) for one in self.operations)
