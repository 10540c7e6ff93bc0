"""What lists and pages show, read from the projections. SPEC sections 7, 17 and F13.

Rows are facts, never verdicts: whatever decides asks the resolver (R11). Row fields are the projection's columns, so a
damaged projection may hold anything in them; a rebuild mends it. All lists are paged: pass the last row's `key` as
`after`, or its sequence where rows are ordered by one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..domain.identifiers import (
    ClaimId,
    EventId,
    IncarnationId,
    InvocationId,
    OperationId,
    RequestId,
    RunId,
    SessionId,
    ToolCallId,
    TurnId,
)

PAGE_MAX = 1000


class SessionKey(NamedTuple):
    """Where a session stands in the list."""

    newest_at: str
    session_id: SessionId


class SessionRow(NamedTuple):
    """A session and its head run. `head_status` is None while the head is open; `unsettled` counts operations as
    `OperationViews.unsettled` lists them.
    """

    session_id: SessionId
    opened_at: str | None
    head_run_id: RunId | None
    head_kind: str | None
    head_admitted_at: str | None
    head_status: str | None
    head_failure_class: str | None
    head_ended_at: str | None
    head_abandoned_by: str | None
    head_incarnation_id: IncarnationId | None
    unsettled: int

    @property
    def key(self) -> SessionKey:
        """Where this row stands in the list."""
        return SessionKey(self.head_admitted_at or self.opened_at or "", self.session_id)


class RunRow(NamedTuple):
    """A run. Columns that no event has written yet are None: `status` while it is open, `opened_at` of an unstarted
    claim.
    """

    run_id: RunId
    session_id: SessionId | None
    turn_id: TurnId | None
    invocation_id: InvocationId | None
    kind: str | None
    claim_id: ClaimId | None
    admitted_sequence: int | None
    admitted_at: str | None
    abandoned_by: str | None
    opened_at: str | None
    opened_event_id: EventId | None
    cwd: str | None
    workspace_identity: str | None
    provider: str | None
    model: str | None
    protocol: str | None
    incarnation_id: IncarnationId | None
    epoch: int | None
    parent_run_id: RunId | None
    parent_operation_id: OperationId | None
    cancel_requested_by: str | None
    ended_at: str | None
    ended_event_id: EventId | None
    status: str | None
    failure_class: str | None
    recovered: int | None
    claimed_by_claim_id: ClaimId | None
    claimed_by_run_id: RunId | None


class OperationKey(NamedTuple):
    """Where an operation stands in the list of unsettled ones."""

    session_id: str
    operation_id: OperationId


class OperationRow(NamedTuple):
    """One side-effect attempt, with the event that made each of its facts."""

    operation_id: OperationId
    session_id: SessionId | None
    run_id: RunId | None
    call_id: ToolCallId | None
    tool_name: str | None
    mode: str | None
    life: str | None
    incarnation_id: IncarnationId | None
    args_hash: str | None
    dispatched_sequence: int | None
    dispatched_at: str | None
    dispatch_event_id: EventId | None
    outcome_event_id: EventId | None
    outcome_is_error: int | None
    effect: str | None
    redeliveries_event_id: EventId | None
    observation: str | None
    decision: str | None
    reason: str | None
    decision_event_id: EventId | None
    attestation: str | None
    attestation_event_id: EventId | None
    watched: str | None
    cleared_by: str | None

    @property
    def key(self) -> OperationKey:
        """Where this row stands in the list of unsettled ones."""
        return OperationKey(self.session_id or "", self.operation_id)


class PermissionRow(NamedTuple):
    """A question to a person, and what became of it."""

    request_id: RequestId
    session_id: SessionId | None
    run_id: RunId | None
    call_id: ToolCallId | None
    tool_name: str | None
    args_hash: str | None
    reason: str | None
    requested_event_id: EventId | None
    approved: int | None
    decided_by: str | None
    decided_event_id: EventId | None
    closed_event_id: EventId | None


class ContinuationRow(NamedTuple):
    """A claim; `started_event_id` is None while it is unstarted. How it ended stands in its target's row."""

    claim_id: ClaimId
    session_id: SessionId | None
    source_run_id: RunId | None
    source_high_water: int | None
    source_digest: str | None
    boundary_digest: str | None
    target_run_id: RunId | None
    trigger: str | None
    claimed_event_id: EventId | None
    claimed_at: str | None
    started_kind: str | None
    started_event_id: EventId | None


class Kinship(NamedTuple):
    """How a session stands in the order of repair: only a hint, which the events decide.

    `unstarted` is true where the head was admitted by a claim and has no event. `parent_session_id` is where the run
    stands that started the session's first one; None where no run did, or none that is known.
    """

    session_id: SessionId
    unstarted: bool
    parent_session_id: SessionId | None


class SessionViews(Protocol):
    """Sessions and their runs.

    Raises (all methods of this file): StoreUnavailable when it could not look; StoreDamaged when the view cannot be
    read.
    """

    @abstractmethod
    def sessions(self, *, after: SessionKey | None = None, limit: int = 50) -> Sequence[SessionRow]:
        """A page of sessions, newest head first, at most `limit` (1 to `PAGE_MAX`). Costs what the page costs."""

    @abstractmethod
    def session(self, session_id: SessionId) -> SessionRow | None:
        """One session, or None when no event names it."""

    @abstractmethod
    def runs(self, session_id: SessionId, *, after: int = 0, limit: int = PAGE_MAX) -> Sequence[RunRow]:
        """Runs of a session that were admitted after session sequence `after`, in order of admission."""

    @abstractmethod
    def run(self, run_id: RunId) -> RunRow | None:
        """One run, or None when no event names it."""

    @abstractmethod
    def open_runs(self, session_id: SessionId) -> Sequence[RunRow]:
        """Runs of a session without terminal event that nobody abandoned; whoever repairs confirms it from the
        events.
        """

    @abstractmethod
    def folders_of(self, workspace_identity: str, *, limit: int = PAGE_MAX) -> Sequence[str]:
        """Folders that runs of a workspace began in, each once, in order: several where it was moved or copied."""


class FamilyViews(Protocol):
    """Sessions of child runs, which are repaired before those of their parents. SPEC section 11."""

    @abstractmethod
    def kinships(self, session_ids: Sequence[SessionId]) -> Sequence[Kinship]:
        """Those of the named sessions that an event names, at most `PAGE_MAX` of them, in any order."""

    @abstractmethod
    def children(
        self, session_id: SessionId, *, after: SessionId | None = None, limit: int = PAGE_MAX
    ) -> Sequence[SessionId]:
        """Sessions of child runs that a run of this session started, in order of their ids; each once."""


class OperationViews(Protocol):
    """Operations and questions."""

    @abstractmethod
    def operations(self, run_id: RunId, *, after: int = 0, limit: int = PAGE_MAX) -> Sequence[OperationRow]:
        """Operations of a run that were dispatched after run sequence `after`, in order of dispatch."""

    @abstractmethod
    def operation(self, operation_id: OperationId) -> OperationRow | None:
        """One operation, or None when no event names it."""

    @abstractmethod
    def unsettled(
        self, session_id: SessionId | None = None, *, after: OperationKey | None = None, limit: int = PAGE_MAX
    ) -> Sequence[OperationRow]:
        """Operations whose effect is in doubt, of one session or of all, by session and operation id: those that their
        session watches as unknown, indeterminate or parked, and those of a head run that is open, or ended without
        being completed or claimed, which have no outcome or one that says that the effect is unknown.
        """

    @abstractmethod
    def open_permissions(
        self, session_id: SessionId | None = None, *, limit: int = PAGE_MAX
    ) -> Sequence[PermissionRow]:
        """Questions that nobody has decided or closed, by request id."""

    @abstractmethod
    def permission(self, request_id: RequestId) -> PermissionRow | None:
        """One question, whatever became of it, or None when no event names it."""


class ContinuationViews(Protocol):
    """Claims."""

    @abstractmethod
    def continuation_of(self, boundary_digest: str) -> ContinuationRow | None:
        """The claim of a boundary, or None."""

    @abstractmethod
    def continuation_to(self, target_run_id: RunId) -> ContinuationRow | None:
        """The claim that reserved a run, or None."""

    @abstractmethod
    def continuations(self, session_id: SessionId, *, limit: int = PAGE_MAX) -> Sequence[ContinuationRow]:
        """Claims of a session, oldest first."""


class Views(SessionViews, FamilyViews, OperationViews, ContinuationViews, Protocol):
    """All of them."""
