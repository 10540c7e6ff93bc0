"""Everything that the gates look at, gathered by the application. SPEC section 13."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self, TypeAlias

from ..events.event import RunEvent
from ..events.run import (
    Budgets,
    ContinuationStarted,
    ExecutionProfile,
    PrefixRef,
    Protocol,
    RunClaimed,
    RunOpened,
    RunStatus,
    ToolProfile,
    Trigger,
)
from ..identifiers import ClaimId, InvocationId, RunId, SessionId, TurnId
from ..reasons import ParkReason
from ..recovery.verdict import Resolution
from ..replay.blocks import SegmentBlocks
from ..replay.context import ContextHistory
from .observations import (
    Authority,
    Busy,
    CheckpointFacts,
    ModelWindow,
    NotOver,
    WorkspaceFound,
    WorkspaceUnknown,
)
from .survey import Survey


class Drift(StrEnum):
    """What of an execution profile may differ when a person says so; recorded in the claim and told to the model."""

    TOOLS = "tools"
    PROVIDER = "provider"
    MODEL = "model"
    ACCOUNT = "account"
    SYSTEM_PROMPT = "system_prompt"
    PROTOCOL = "protocol"
    PERMISSION_POLICY = "permission_policy"


class Candidate(NamedTuple):
    """The run that would be continued.

    Attributes:
        status: how it ended, None while it has no terminal event.
        head_run_id: the session's head; another run means that this one is superseded.
        abandoned: a person gave it up.
    """

    run_id: RunId
    status: RunStatus | None
    head_run_id: RunId
    abandoned: bool = False


class Unreadable(NamedTuple):
    """A run that could not be read: `code` says whether it could not be looked at, is not there, or is damaged.

    Attributes:
        sequence: where in the run, from 1, as far as known.
    """

    code: ParkReason
    run_id: RunId
    detail: str = ""
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """One run of the lineage, its chain verified, up to the boundary.

    Attributes:
        ref: identity, high-water and digest of the prefix as it was read.
        survey: what the gates ask for of the first `ref.high_water` events.
        blocks: what a provider may be shown of them.
        resolution: the verdicts on exactly these.
        foreign: absence proves nothing in it.
        claimed: the event right after the boundary, where it is the claim that names the next segment.
    """

    ref: PrefixRef
    survey: Survey
    blocks: SegmentBlocks
    resolution: Resolution
    foreign: bool = False
    claimed: RunClaimed | None = None

    @property
    def opening(self) -> RunOpened | ContinuationStarted | None:
        """The run's first event, None where it is no opening."""
        return self.survey.opening

    @classmethod
    def of(
        cls,
        ref: PrefixRef,
        events: Iterable[RunEvent],
        resolution: Resolution,
        foreign: bool = False,
        claimed: RunClaimed | None = None,
    ) -> Self:
        """The facts of a run whose events are at hand."""
        survey, blocks = Survey(), SegmentBlocks()
        for event in events:
            survey.feed(event, event.identity)
            blocks.feed(event)
        return cls(ref, survey, blocks, resolution, foreign, claimed)


SegmentReading: TypeAlias = SegmentFacts | Unreadable


class Standing(StrEnum):
    """How far an existing continuation of the boundary came, and whether its starter can still act."""

    UNSTARTED = "unstarted"
    STARTED = "started"
    STARTED_BY_THE_DEAD = "started_by_the_dead"
    ENDED = "ended"


class ExistingContinuation(NamedTuple):
    """The claim that stands already."""

    claim_id: ClaimId
    target_run_id: RunId
    standing: Standing


class FreshIds(NamedTuple):
    """What the continuation will be called."""

    claim_id: ClaimId
    run_id: RunId
    turn_id: TurnId
    invocation_id: InvocationId


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a plan is made from. Optional facts that are None were not to be had, unless said otherwise.

    Attributes:
        session_unreadable: the session itself could not be read; then there is no candidate.
        expected_high_water: what the caller saw, None where it expects nothing.
        lineage: oldest first, the source last; where it breaks, the unreadable run stands first.
        earlier: the turns before the lineage, from its recorded context.
        behind_anchor: the store may have lost its tail.
        adopt: a person continues foreign runs knowingly.
        existing: the continuation of this boundary that stands already, None where there is none.
        not_over: of the lineage's operations, those that are asked about and are not proven over.
        drop_permissions: a person drops open questions.
        budgets: in place of those that the lineage recorded; None where nothing was said.
        checkpoint: None where the lineage accepted none.
        profile: what the host would run with now; its `tools` are ignored.
        tools: the catalog now.
        accepted_drift: what a person said may differ.
        window: None where the model's window is not known; then nothing is too large.
        ids_taken: those of the fresh ids that the store knows already.
    """

    session_id: SessionId
    fresh: FreshIds
    candidate: Candidate | None
    lineage: tuple[SegmentReading, ...]
    workspace: WorkspaceFound | WorkspaceUnknown
    profile: ExecutionProfile | None
    tools: tuple[ToolProfile, ...] | None
    protocol: Protocol | None
    cwd: str
    feature_enabled: bool = True
    trigger: Trigger = Trigger.PERSON
    busy: Busy | None = None
    session_unreadable: Unreadable | None = None
    expected_high_water: int | None = None
    earlier: ContextHistory | None = None
    behind_anchor: bool = False
    adopt: bool = False
    existing: ExistingContinuation | None = None
    authority: Authority = Authority.HELD_OR_FREE
    not_over: tuple[NotOver, ...] = ()
    drop_permissions: bool = False
    budgets: Budgets | None = None
    checkpoint: CheckpointFacts | None = None
    accepted_drift: frozenset[Drift] = frozenset()
    window: ModelWindow | None = None
    ids_taken: frozenset[str] = frozenset()

    @property
    def source(self) -> SegmentFacts | None:
        """The run that would be continued, None where it could not be read."""
        last = self.lineage[-1] if self.lineage else None
        return last if isinstance(last, SegmentFacts) else None

    @property
    def segments(self) -> tuple[SegmentFacts, ...]:
        """What could be read of the lineage."""
        return tuple(segment for segment in self.lineage if isinstance(segment, SegmentFacts))
