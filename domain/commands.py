"""The commands of SPEC section 7: what may be asked of the ledger, and nothing else.

Each carries candidates: events without sequence and digest. A command cannot hold facts that it may not write: its
fields have the only types that it may. Facts that a decision derives (closings, notices taken over, what is watched)
get ids derived from the command's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .events.model import HostMessage, ModelStepCompleted, ModelText, ModelThinking, ProviderAttempted, UserMessage
from .events.outside import (
    BackgroundSettled,
    BackgroundStarted,
    CheckpointAccepted,
    PermissionDecided,
    PermissionRequested,
    WorkspaceRebaselined,
    WorkspaceRenewed,
    WorkspaceTransitioned,
)
from .events.run import BudgetSet, CancelRequested, ContinuationStarted, RunClaimed, RunEnded, RunError, RunOpened
from .events.session import GrantPosted, NoticePosted, OperationAttested, RunAbandoned, RunAdmitted, SessionOpened
from .events.tool import (
    ToolAttested,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from .identifiers import IncarnationId, RunId, SessionId

OrdinaryFact: TypeAlias = (
    UserMessage
    | HostMessage
    | PermissionRequested
    | PermissionDecided
    | BackgroundSettled
    | CheckpointAccepted
    | WorkspaceTransitioned
    | WorkspaceRebaselined
    | WorkspaceRenewed
    | CancelRequested
    | RunError
    | ProviderAttempted
)
StepFact: TypeAlias = ModelText | ModelThinking | ToolCalled | ModelStepCompleted
LateFact: TypeAlias = (
    BackgroundSettled
    | PermissionDecided
    | CheckpointAccepted
    | WorkspaceTransitioned
    | WorkspaceRebaselined
    | WorkspaceRenewed
)


@dataclass(frozen=True, slots=True)
class Command:
    """What all commands name: the session, and the owner that asks."""

    session_id: SessionId
    incarnation_id: IncarnationId
    epoch: int


@dataclass(frozen=True, slots=True)
class OpenRun(Command):
    """Admit a new turn (or child run) and open it with its user message, in one commit."""

    opened: RunOpened
    message: UserMessage
    admitted: RunAdmitted
    session_opened: SessionOpened
    host_messages: tuple[HostMessage, ...] = ()
    budget: BudgetSet | None = None

    @property
    def run_id(self) -> RunId:
        """The run that it opens."""
        return self.opened.run_id


@dataclass(frozen=True, slots=True)
class Append(Command):
    """Write ordinary facts of an open run."""

    run_id: RunId
    facts: tuple[OrdinaryFact, ...]


@dataclass(frozen=True, slots=True)
class RefuseCall(Command):
    """Answer a call before T1: an error response with effect `none` and no dispatch (SPEC section 8)."""

    run_id: RunId
    response: ToolResponded


@dataclass(frozen=True, slots=True)
class RecordStep(Command):
    """Write all facts of one completed model step."""

    run_id: RunId
    facts: tuple[StepFact, ...]


class PrepareTool(NamedTuple):
    """T1. A tuple, as T2 is, because a frozen data class takes four times as long to make."""

    session_id: SessionId
    incarnation_id: IncarnationId
    epoch: int
    run_id: RunId
    dispatch: ToolDispatched


class CommitOutcome(NamedTuple):
    """T2, with the handle of work that goes on after it, if any."""

    session_id: SessionId
    incarnation_id: IncarnationId
    epoch: int
    run_id: RunId
    response: ToolResponded
    left_running: BackgroundStarted | None = None


@dataclass(frozen=True, slots=True)
class EndRun(Command):
    """Close what was not dispatched, watch what is not certain, and write the terminal event.

    A person's stop (`stopped_by`) also closes open permissions for good (F4).
    """

    run_id: RunId
    ended: RunEnded
    stopped_by: str | None = None


@dataclass(frozen=True, slots=True)
class AppendLate(Command):
    """Write what may still follow a terminal event, with its grant or notice for the session."""

    run_id: RunId
    fact: LateFact
    grant: GrantPosted | None = None
    notice: NoticePosted | None = None


@dataclass(frozen=True, slots=True)
class StartRedelivery(Command):
    """A second delivery with the recorded key is about to start."""

    run_id: RunId
    started: ToolRedeliveryStarted
    now: str


@dataclass(frozen=True, slots=True)
class CommitRecovery(Command):
    """A recovery bundle: observation, outcome when completed, decision; all in one commit."""

    run_id: RunId
    expected_sequence: int
    reconciled: ToolReconciled
    outcome: ToolResponded | None
    decided: ToolRecoveryDecided
    notice: NoticePosted | None = None


@dataclass(frozen=True, slots=True)
class CommitAttestation(Command):
    """A person's statement with the response that it makes; `response` is None where there is one already."""

    run_id: RunId
    expected_sequence: int
    attested: ToolAttested
    response: ToolResponded | None
    notice: NoticePosted | None = None


@dataclass(frozen=True, slots=True)
class AttestInSession(Command):
    """A person's statement about an operation of a run in which nothing more is written."""

    run_id: RunId
    attested: OperationAttested
    notice: NoticePosted | None = None


@dataclass(frozen=True, slots=True)
class ClaimContinuation(Command):
    """Seal the source at the boundary and admit the target, decided on heads and digests only."""

    run_id: RunId
    claimed: RunClaimed
    admitted: RunAdmitted


@dataclass(frozen=True, slots=True)
class StartContinuation(Command):
    """The target's first commit."""

    run_id: RunId
    source_run_id: RunId
    started: ContinuationStarted
    host_messages: tuple[HostMessage, ...] = ()
    budget: BudgetSet | None = None


@dataclass(frozen=True, slots=True)
class RepairContinuation(Command):
    """Close a claim whose target never started: start and end in one commit, no provider call."""

    run_id: RunId
    source_run_id: RunId
    started: ContinuationStarted
    ended: RunEnded


@dataclass(frozen=True, slots=True)
class AbandonRun(Command):
    """A person gives a damaged run up."""

    run_id: RunId
    abandoned: RunAbandoned


AnyCommand: TypeAlias = (
    OpenRun
    | Append
    | RefuseCall
    | RecordStep
    | PrepareTool
    | CommitOutcome
    | EndRun
    | AppendLate
    | StartRedelivery
    | CommitRecovery
    | CommitAttestation
    | AttestInSession
    | ClaimContinuation
    | StartContinuation
    | RepairContinuation
    | AbandonRun
)
