"""Facts that begin, stop, end and seal a run, and the values that they carry. SPEC sections 5, 12 and 14."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from ..identifiers import (
    ClaimIdField,
    IncarnationIdField,
    InvocationIdField,
    OperationIdField,
    RunIdField,
    SessionIdField,
    TurnIdField,
)
from .event import Digest, RunEvent, ToolName, Value

TOOL_BOUNDARY_PROTOCOL: Literal["t1_after_preflight_v1"] = "t1_after_preflight_v1"
"""Declared only where the store really is the durable T1/T2 sink. SPEC section 5."""

Protocol = Literal["t1_after_preflight_v1"]
Sequence = Annotated[int, Field(ge=1)]
Epoch = Annotated[int, Field(ge=1)]


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StartKind(StrEnum):
    """Whether a continuation was started to run, or only closed by repair."""

    RUNTIME_ADMISSION = "runtime_admission"
    CLAIM_REPAIR = "claim_repair"


class Trigger(StrEnum):
    """Who asked for a continuation. SPEC F11."""

    PERSON = "person"
    AUTO = "auto"


class ToolProfile(Value):
    """A tool as the model was offered it."""

    name: ToolName
    schema_digest: Digest
    contract_digest: Digest


NOT_RECORDED: Final = "unknown"
"""Stands in the profile of an imported run for what its file does not say; no policy of a gate, nor a model, has it."""


class ExecutionProfile(Value):
    """What a run was executed with; a change parks a resume. SPEC section 13, gate 6."""

    provider: str
    model: str
    account: str | None = None
    system_prompt_digest: Digest
    permission_policy: str
    tools: tuple[ToolProfile, ...] = ()


class PrefixRef(Value):
    """An immutable prefix of one run, named by the digest of its last event. SPEC section 6."""

    session_id: SessionIdField
    run_id: RunIdField
    turn_id: TurnIdField
    invocation_id: InvocationIdField
    high_water: Sequence
    digest: Digest


class ShownUnsettled(Value):
    """An operation of an earlier turn that the model was shown as unknown, and with which sentence."""

    run_id: RunIdField
    operation_id: OperationIdField
    sentence_id: str


class Context(Value):
    """The history that a new turn was given: the previous turn's lineage at a boundary. SPEC section 12."""

    previous: PrefixRef
    left_out: tuple[RunIdField, ...] = ()
    cut_before: RunIdField | None = None
    unsettled: tuple[ShownUnsettled, ...] = ()


class RunOpened(RunEvent):
    """First event of an ordinary run."""

    topic: ClassVar[str] = "run.opened.v1"

    cwd: str
    workspace_identity: str | None = None
    profile: ExecutionProfile
    protocol: Protocol | None = None
    incarnation_id: IncarnationIdField
    epoch: Epoch
    parent_session_id: SessionIdField | None = None
    parent_run_id: RunIdField | None = None
    parent_operation_id: OperationIdField | None = None
    context: Context | None = None


class TargetHeader(Value):
    """What a continuation will run with, frozen in the claim and repeated by its first event. SPEC section 14."""

    run_id: RunIdField
    turn_id: TurnIdField
    invocation_id: InvocationIdField
    cwd: str
    workspace_identity: str | None = None
    profile: ExecutionProfile
    protocol: Protocol | None = None


class ContinuationStarted(RunEvent):
    """First event of a continuation run."""

    topic: ClassVar[str] = "continuation.started.v1"

    claim_id: ClaimIdField
    boundary_digest: Digest
    source: PrefixRef
    replay_digest: Digest
    projection_version: Annotated[int, Field(ge=1)]
    kind: StartKind
    cwd: str
    workspace_identity: str | None = None
    profile: ExecutionProfile
    protocol: Protocol | None = None
    incarnation_id: IncarnationIdField
    epoch: Epoch


class Budgets(Value):
    """What a turn may use over its whole lineage; what is None is not bounded.

    Attributes:
        steps_max: model steps.
        tokens_max: input and output tokens of all steps, as the provider reports them.
        seconds_max: seconds of execution, without waiting for a person.
    """

    steps_max: Annotated[int, Field(ge=1)] | None = None
    tokens_max: Annotated[int, Field(ge=1)] | None = None
    seconds_max: Annotated[int, Field(ge=1)] | None = None


class BudgetSet(RunEvent):
    """What the turn may use, as a person or the host said when this run began; its continuations go on counting."""

    topic: ClassVar[str] = "run.budget_set.v1"

    budgets: Budgets


class CancelRequested(RunEvent):
    """A person asked that the run stops; nothing is dispatched after it."""

    topic: ClassVar[str] = "run.cancel_requested.v1"

    by: str


class RunError(RunEvent):
    """An error of the run itself, by class and code only."""

    topic: ClassVar[str] = "run.error.v1"

    error_class: str
    code: str


class RunEnded(RunEvent):
    """The terminal event; after it the run is sealed for execution. SPEC R10."""

    topic: ClassVar[str] = "run.ended.v1"

    status: RunStatus
    failure_class: str | None = None
    recovered: bool = False
    incarnation_id: IncarnationIdField
    epoch: Epoch


class RunClaimed(RunEvent):
    """The whole claim to continue a boundary, written right after it, and the run's last event for good."""

    topic: ClassVar[str] = "run.claimed.v1"

    claim_id: ClaimIdField
    segments: Annotated[tuple[PrefixRef, ...], Field(min_length=1)]
    boundary_digest: Digest
    replay_digest: Digest
    projection_version: Annotated[int, Field(ge=1)]
    target: TargetHeader
    accepted_drift: tuple[str, ...] = ()
    trigger: Trigger
    incarnation_id: IncarnationIdField
    epoch: Epoch
