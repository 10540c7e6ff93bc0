"""What a planner answers: continue, with everything frozen that it saw, or park with every reason. SPEC section 13."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from ..budgets import NOTHING, Used
from ..events.event import Json
from ..events.run import Budgets, ExecutionProfile, PrefixRef, RunStatus, TargetHeader, Trigger
from ..identifiers import ClaimId
from ..reasons import ParkReason
from ..replay.context import Told
from ..replay.history import Replay
from .facts import Drift
from .observations import CheckpointFacts

Detail: TypeAlias = Mapping[str, Json]
"""Ids, names and numbers for people; never a prompt, an argument or a result (R15)."""


class Reason(NamedTuple):
    """One failing gate, about one thing."""

    code: ParkReason
    detail: Detail


class NoteCode(StrEnum):
    """What a person may want to know of a plan, and what refuses nothing."""

    WORKSPACE_MOVED = "workspace_moved"
    WORKSPACE_NOT_RECORDED = "workspace_not_recorded"
    TOOLS_ADDED = "tools_added"
    TOOLS_REMOVED_UNUSED = "tools_removed_unused"
    TOOLS_CHANGED_UNUSED = "tools_changed_unused"
    DRIFT_ACCEPTED = "drift_accepted"
    PERMISSIONS_DROPPED = "permissions_dropped"
    FOREIGN_ADOPTED = "foreign_adopted"
    OPERATION_NOT_DISPATCHED = "operation_not_dispatched"
    HISTORY_TRIMMED = "history_trimmed"
    BLOBS_LEFT_OUT = "blobs_left_out"
    CALL_IDS_RENAMED = "call_ids_renamed"
    HISTORY_SIZE = "history_size"
    OLDER_PROJECTION = "older_projection"
    LAST_STEP_CUT_SHORT = "last_step_cut_short"


class Note(NamedTuple):
    """A diagnostic of a plan."""

    code: NoteCode
    detail: Detail


class SafetySnapshot(NamedTuple):
    """What a plan saw of the world and must see again right before it is executed. SPEC R14."""

    terminal_event_id: str
    terminal_status: RunStatus
    workspace_identity: str | None
    checkpoint_ref: str | None
    catalog_digest: str
    profile: ExecutionProfile


@dataclass(frozen=True, slots=True)
class Continue:
    """The run may be continued, as far as this plan saw: it is no lease.

    Attributes:
        segments: the boundary, oldest first, the source last.
        replay: exactly what the provider will see first.
        target: what the claim freezes and the start repeats.
        told: host messages that the first commit must carry.
        budgets: what the turn may use, None where it is not bounded.
        used: what its lineage has used of that.
        checkpoint: the content that the lineage is bound to, and that is there; None where it is bound to none.
    """

    segments: tuple[PrefixRef, ...]
    boundary_digest: str
    replay: Replay
    claim_id: ClaimId
    target: TargetHeader
    trigger: Trigger
    accepted_drift: tuple[Drift, ...]
    told: tuple[Told, ...]
    safety: SafetySnapshot
    notes: tuple[Note, ...] = ()
    budgets: Budgets | None = None
    used: Used = NOTHING
    checkpoint: CheckpointFacts | None = None

    @property
    def source(self) -> PrefixRef:
        """The run that is continued, at its boundary."""
        return self.segments[-1]


@dataclass(frozen=True, slots=True)
class Park:
    """The run is kept as it is: every failing gate, in their order."""

    reasons: tuple[Reason, ...]
    notes: tuple[Note, ...] = ()

    @property
    def codes(self) -> tuple[ParkReason, ...]:
        """Each code once, in order."""
        return tuple(dict.fromkeys(reason.code for reason in self.reasons))


Plan: TypeAlias = Continue | Park
