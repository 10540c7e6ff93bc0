"""Facts of a session: which runs it admitted, and the inbox for later runs. SPEC sections 3 and 5."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ..identifiers import (
    ClaimIdField,
    GrantIdField,
    InvocationIdField,
    NoticeIdField,
    OperationIdField,
    RequestIdField,
    RunIdField,
    ToolCallIdField,
    TurnIdField,
)
from .event import Digest, Json, SessionEvent, ToolName
from .tool import RecoveryMode, Statement


class RunKind(StrEnum):
    """Why a session admitted a run."""

    TURN = "turn"
    CONTINUATION = "continuation"
    CHILD = "child"


class WatchStatus(StrEnum):
    """What is known of an effect that a later call must not repeat unasked. SPEC F9.

    `recovered` and `attested` guard the continuation of the same turn only.
    """

    UNKNOWN = "unknown"
    INDETERMINATE = "indeterminate"
    PARKED = "parked"
    RECOVERED = "recovered"
    ATTESTED = "attested"


class ClearedBy(StrEnum):
    """What took an effect off the watch list. SPEC F9."""

    SETTLED = "settled"
    ATTESTED = "attested"
    APPROVED_REPEAT = "approved_repeat"
    DELIVERED_AGAIN = "delivered_again"
    TURN_ENDED = "turn_ended"


class SessionOpened(SessionEvent):
    """First fact of a session."""

    topic: ClassVar[str] = "session.opened.v1"


class RunAdmitted(SessionEvent):
    """A run became the head of the session; a continuation's target ids are reserved by it."""

    topic: ClassVar[str] = "session.run_admitted.v1"

    run_id: RunIdField
    turn_id: TurnIdField
    invocation_id: InvocationIdField
    kind: RunKind
    claim_id: ClaimIdField | None = None


class NoticePosted(SessionEvent):
    """Something that the next run must tell the model, by the id of its sentence."""

    topic: ClassVar[str] = "session.notice_posted.v1"

    notice_id: NoticeIdField
    sentence_id: str
    parameters: dict[str, Json]


class NoticesTaken(SessionEvent):
    """A run's first commit took these notices over as host messages."""

    topic: ClassVar[str] = "session.notices_taken.v1"

    run_id: RunIdField
    notice_ids: tuple[NoticeIdField, ...]


class GrantPosted(SessionEvent):
    """A person's decision on a permission of an ended run, bound to what was asked. SPEC section 13, F6."""

    topic: ClassVar[str] = "session.grant_posted.v1"

    grant_id: GrantIdField
    request_id: RequestIdField
    tool_name: ToolName
    call_id: ToolCallIdField
    args_hash: Digest
    contract_digest: Digest
    approved: bool
    decided_by: str
    repeats: OperationIdField | None = None


class GrantsTaken(SessionEvent):
    """A run's first commit took these grants over; what it does not use lapses with it."""

    topic: ClassVar[str] = "session.grants_taken.v1"

    run_id: RunIdField
    grant_ids: tuple[GrantIdField, ...]


class EffectWatched(SessionEvent):
    """An effect whose outcome is not certain, so that a repeat under a new call id is noticed. SPEC F9."""

    topic: ClassVar[str] = "session.effect_watched.v1"

    operation_id: OperationIdField
    run_id: RunIdField
    tool_name: ToolName
    args_hash: Digest
    arguments_only_hash: Digest
    has_arguments: bool
    mode: RecoveryMode
    status: WatchStatus
    idempotency_key: str | None = None
    key_valid_until: str | None = None


class EffectCleared(SessionEvent):
    """A watched effect became certain, or a person approved its repeat."""

    topic: ClassVar[str] = "session.effect_cleared.v1"

    operation_id: OperationIdField
    by: ClearedBy


class OperationAttested(SessionEvent):
    """A person's statement about an operation of a run in which nothing more is written: claimed, or given up."""

    topic: ClassVar[str] = "session.operation_attested.v1"

    operation_id: OperationIdField
    run_id: RunIdField
    tool_name: ToolName
    statement: Statement
    by: str
    note: str


class RunAbandoned(SessionEvent):
    """A person gave up a damaged run; it is no longer open and never a source. SPEC section 11."""

    topic: ClassVar[str] = "session.run_abandoned.v1"

    run_id: RunIdField
    by: str
    note: str
    last_good_sequence: Annotated[int, Field(ge=0)]
