"""Facts of the tool boundary: call, T1, T2, a second delivery, and what recovery found. SPEC sections 5, 8 and 10."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from ..identifiers import EventIdField, GrantIdField, IncarnationIdField, OperationIdField, StepIdField, ToolCallIdField
from .event import Digest, Json, RunEvent, ToolName, Value


class RecoveryMode(StrEnum):
    """What a tool's owner promises about repeating it. SPEC section 8."""

    REPLAY_SAFE = "replay_safe"
    IDEMPOTENT = "idempotent"
    RECONCILE = "reconcile"
    REATTACH = "reattach"
    OUTCOME_UNKNOWN = "outcome_unknown"
    NEVER_AUTO_RETRY = "never_auto_retry"


class Life(StrEnum):
    """Where an operation lives, which decides how its end is proven. SPEC section 15."""

    TASK = "task"
    SUPERVISED = "supervised"


class Effect(StrEnum):
    """What a response says of the effect. SPEC section 8."""

    DONE = "done"
    NONE = "none"
    UNKNOWN = "unknown"


class Observation(StrEnum):
    """What the outside world looked like when it was looked at again. SPEC section 10."""

    MATCHES_EXPECTED_STATE = "matches_expected_state"
    ALREADY_SATISFIED = "already_satisfied"
    MATCHES_PRIOR_STATE = "matches_prior_state"
    DIVERGED = "diverged"
    UNREADABLE = "unreadable"
    EFFECT_FREE = "effect_free"
    REDELIVERED = "redelivered"
    HANDLE_SETTLED = "handle_settled"
    HANDLE_RUNNING = "handle_running"
    HANDLE_UNKNOWN = "handle_unknown"
    LATE_OUTCOME = "late_outcome"


class Disposition(StrEnum):
    """How a recovery decision ends an operation."""

    COMPLETED = "completed"
    PARKED = "parked"


class Statement(StrEnum):
    """What a person says of an operation. `over` says only that nothing of it runs any more. SPEC sections 10, 15."""

    COMPLETED = "completed"
    NOT_EXECUTED = "not_executed"
    OVER = "over"


class RecordedContract(Value):
    """A tool's recovery contract as it stood at T1; nothing later can upgrade it. SPEC section 8."""

    mode: RecoveryMode
    contract_id: str
    version: Annotated[int, Field(ge=1)]
    digest: Digest
    key_valid_seconds: Annotated[int, Field(ge=1)] | None = None
    repeat_free: bool = False
    parameters: dict[str, Json] = Field(default_factory=dict)


class ToolCalled(RunEvent):
    """The model asked for a tool. `args` is strict JSON; where its text was not, `args_text` keeps that instead."""

    topic: ClassVar[str] = "tool.called.v1"
    model_visible: ClassVar[bool] = True

    step_id: StepIdField
    call_id: ToolCallIdField
    provider_call_id: str | None = None
    tool_name: ToolName
    args: Json = None
    args_text: str | None = None
    provider_text: str | None = None
    provider_options: Json = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.args_text is not None and self.args is not None:
            raise ValueError("a call has arguments or their text, never both")
        return self


class ToolDispatched(RunEvent):
    """T1: from here on it cannot be assumed that the implementation did not run."""

    topic: ClassVar[str] = "tool.dispatched.v1"

    operation_id: OperationIdField
    call_id: ToolCallIdField
    tool_name: ToolName
    args_hash: Digest
    contract: RecordedContract
    idempotency_key: str | None = None
    evidence: Json = None
    incarnation_id: IncarnationIdField
    life: Life
    grant_id: GrantIdField | None = None
    repeats: OperationIdField | None = None


class ToolResponded(RunEvent):
    """T2 when it names an operation; a refusal before T1 when it names none."""

    topic: ClassVar[str] = "tool.responded.v1"
    model_visible: ClassVar[bool] = True

    call_id: ToolCallIdField
    tool_name: ToolName
    operation_id: OperationIdField | None = None
    result: Json
    is_error: bool
    effect: Effect
    code: str | None = None
    original_length: Annotated[int, Field(ge=0)] | None = None
    original_digest: Digest | None = None


class ToolRedeliveryStarted(RunEvent):
    """A second delivery with the recorded key is about to start."""

    topic: ClassVar[str] = "tool.redelivery_started.v1"

    operation_id: OperationIdField
    idempotency_key: str
    incarnation_id: IncarnationIdField
    life: Life


class ToolReconciled(RunEvent):
    """What the outside world looked like."""

    topic: ClassVar[str] = "tool.reconciled.v1"

    operation_id: OperationIdField
    observation: Observation
    evidence_digest: Digest | None = None
    reconciler_id: str
    reconciler_version: Annotated[int, Field(ge=1)]


class ToolRecoveryDecided(RunEvent):
    """The end of a recovery: completed with an outcome, or parked with a reason."""

    topic: ClassVar[str] = "tool.recovery_decided.v1"

    operation_id: OperationIdField
    disposition: Disposition
    reason: str
    evidence_event_ids: tuple[EventIdField, ...]
    outcome_event_id: EventIdField | None = None


class ToolAttested(RunEvent):
    """A person's statement about an operation whose outcome is not certain. Never available to a model."""

    topic: ClassVar[str] = "tool.attested.v1"

    operation_id: OperationIdField
    statement: Statement
    by: str
    note: str
    supersedes: EventIdField | None = None
