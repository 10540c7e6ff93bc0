"""What a person can say of an operation, and what becomes of it. SPEC section 10."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from ..domain.errors import SafepointError
from ..domain.events.event import Json
from ..domain.events.tool import Statement
from ..domain.identifiers import OperationId, RunId, SessionId
from .over import OverState


@dataclass(frozen=True, slots=True)
class SaidBy:
    """What a person says of one operation.

    Attributes:
        by, note: who says it, and why; for the record.
        result: of a completed operation, strict JSON.
    """

    operation_id: OperationId
    statement: Statement
    by: str
    note: str
    result: Json = None


class SettlementRefusal(StrEnum):
    """Why nothing was recorded."""

    UNKNOWN_OPERATION = "unknown_operation"
    NOTHING_TO_SETTLE = "nothing_to_settle"
    KNOWN_TO_BE_OVER = "known_to_be_over"
    ALREADY_ATTESTED = "already_attested"
    OPERATION_NOT_OVER = "operation_not_over"
    RUN_OPEN = "run_open"
    RUN_DAMAGED = "run_damaged"
    RESULT_TOO_LARGE = "result_too_large"


class SettlementRefused(SafepointError):
    """Nothing was recorded.

    Attributes:
        code: why.
        detail: the same for a person.
    """

    def __init__(self, code: SettlementRefusal, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Recorded(StrEnum):
    """Where the statement stands."""

    IN_RUN = "in_run"
    """In the run, with the answer that it makes if there was none."""
    IN_SESSION = "in_session"
    """In the session: the run takes no more facts."""
    BEFORE = "before"
    """It was said before, in the same words; nothing was written."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of a statement.

    Attributes:
        told_later: the next run tells the model.
    """

    recorded: Recorded
    session_id: SessionId
    run_id: RunId
    tool_name: str
    told_later: bool


def refuse(code: SettlementRefusal, detail: str) -> NoReturn:
    """Record nothing."""
    raise SettlementRefused(code, detail)


def refuse_running(over: OverState) -> NoReturn:
    """Record nothing: something that the operation started is there."""
    pids = ", ".join(f"{process.name} (pid {process.pid})" for process in over.processes)
    detail = f"operation {over.operation_id} may still be running{f': {pids}' if pids else ''}; end it, or wait for it"
    refuse(SettlementRefusal.OPERATION_NOT_OVER, detail)
