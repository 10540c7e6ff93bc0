"""Where it is told what the runtime decided, for operators. SPEC section 18 and R15."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ..domain.identifiers import ClaimId, OperationId, RunId, SessionId


class LifecycleKind(StrEnum):
    """What happened."""

    PLAN_APPROVED = "plan_approved"
    PLAN_PARKED = "plan_parked"
    EXECUTION_STARTED = "execution_started"
    EXECUTION_COMPLETED = "execution_completed"
    EXECUTION_FAILED = "execution_failed"
    REPAIR_COMPLETED = "repair_completed"
    CLAIM_REPAIRED = "claim_repaired"
    OPERATION_RECONCILED = "operation_reconciled"
    OPERATION_ATTESTED = "operation_attested"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleEvent:
    """Identities, codes and error classes; there is no field for a prompt, argument, result or secret.

    Attributes:
        codes: stable codes of SPEC section 22, such as all park reasons.
        error_class: the class name of an error, never its message.
    """

    kind: LifecycleKind
    session_id: SessionId
    run_id: RunId | None = None
    operation_id: OperationId | None = None
    claim_id: ClaimId | None = None
    codes: tuple[str, ...] = ()
    error_class: str | None = None


class LifecycleSink(Protocol):
    """Best effort: what it does never changes what the runtime does. Called from any thread."""

    @abstractmethod
    def record(self, event: LifecycleEvent) -> None:
        """Take note of an event, soon: the caller waits."""
