"""Facts about what is outside a run: permissions, background work and the workspace. SPEC sections 5, 13 and 16."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ..identifiers import GrantIdField, HandleIdField, OperationIdField, RequestIdField, ToolCallIdField
from .event import Digest, Json, RunEvent, ToolName


class JobKind(StrEnum):
    """What a durable handle names."""

    SHELL = "shell"
    REMOTE = "remote"
    CHILD_RUN = "child_run"


class JobStatus(StrEnum):
    """How a job ended, as far as it could be learned."""

    COMPLETED = "completed"
    FAILED = "failed"
    ENDED = "ended"
    UNKNOWN = "unknown"


class PermissionRequested(RunEvent):
    """A call waits for a person; bound to the exact arguments and contract. SPEC F6."""

    topic: ClassVar[str] = "permission.requested.v1"

    request_id: RequestIdField
    call_id: ToolCallIdField
    tool_name: ToolName
    args_hash: Digest
    contract_digest: Digest
    reason: str
    repeats: OperationIdField | None = None


class PermissionDecided(RunEvent):
    """A person, or the policy that a person set, decided."""

    topic: ClassVar[str] = "permission.decided.v1"

    request_id: RequestIdField
    approved: bool
    decided_by: str
    grant_id: GrantIdField | None = None


class PermissionClosed(RunEvent):
    """The question no longer stands: the run was stopped."""

    topic: ClassVar[str] = "permission.closed.v1"

    request_id: RequestIdField
    reason: str


class BackgroundStarted(RunEvent):
    """Work goes on after its tool returned; the handle finds it again."""

    topic: ClassVar[str] = "background.started.v1"

    handle_id: HandleIdField
    kind: JobKind
    operation_id: OperationIdField | None = None
    handle: dict[str, Json]
    detached: bool = False


class BackgroundSettled(RunEvent):
    """The end of such work."""

    topic: ClassVar[str] = "background.settled.v1"

    handle_id: HandleIdField
    status: JobStatus
    exit_code: int | None = None
    signal: Annotated[int, Field(ge=1)] | None = None


class CheckpointAccepted(RunEvent):
    """Binds a checkpoint artifact to a run's boundary. SPEC section 16."""

    topic: ClassVar[str] = "workspace.checkpoint_accepted.v1"

    workspace_identity: str
    workspace_epoch: Annotated[int, Field(ge=0)]
    high_water: Annotated[int, Field(ge=1)]
    digest: Digest
    carrier: str
    ref: str
    tree_id: str
    policy_hash: Digest


class WorkspaceTransitioned(RunEvent):
    """The run goes on in another folder that was made from a checkpoint."""

    topic: ClassVar[str] = "workspace.transitioned.v1"

    from_identity: str
    to_identity: str
    workspace_epoch: Annotated[int, Field(ge=0)]
    path: str
    checkpoint_ref: str


class WorkspaceRebaselined(RunEvent):
    """A person accepted the present content of the workspace as the new baseline."""

    topic: ClassVar[str] = "workspace.rebaselined.v1"

    workspace_identity: str
    workspace_epoch: Annotated[int, Field(ge=1)]
    carrier: str
    ref: str
    tree_id: str
    policy_hash: Digest
    changed_paths: tuple[str, ...] = ()


class WorkspaceRenewed(RunEvent):
    """A copied workspace was given an identity of its own."""

    topic: ClassVar[str] = "workspace.renewed.v1"

    from_identity: str
    to_identity: str
