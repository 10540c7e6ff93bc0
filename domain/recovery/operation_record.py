"""What the scanner knows of one tool call: its facts by lane, where they stand, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ..reasons import LedgerIssue, ParkReason
    from .facts import Called, Dispatched, RecoveryFact, Responded

CallKey: TypeAlias = str | tuple[str, str]
"""A call id, or (invocation id, call id) where a ledger holds several invocations."""


class Issue(NamedTuple):
    """Something that a sound ledger does not hold. SPEC section 22, ledger issues (and `protocol_marker_invalid`)."""

    code: LedgerIssue | ParkReason
    event_id: str
    sequence: int
    operation_id: str | None = None
    call_id: str | None = None


class OperationRecord:
    """The facts of one tool call. Only the scanner changes a record; whoever is given one reads it.

    Attributes:
        key, index: where the scanner keeps it, and its place in the order of first appearance.
        call, dispatch, response: the first fact of each lane; `*_at` is its sequence, 0 when there is none.
        recovery: redeliveries, observations, decisions and attestations with their sequences, in order.
        codes: the ledger issues that name this call, each once, in order.
    """

    __slots__ = (
        "call",
        "call_at",
        "call_id",
        "codes",
        "dispatch",
        "dispatch_at",
        "index",
        "key",
        "operation_id",
        "owner",
        "recovery",
        "response",
        "response_at",
        "tool_name",
    )

    def __init__(self, key: CallKey, index: int, owner: object, call_id: str, tool_name: str) -> None:
        self.key = key
        self.index = index
        self.owner = owner
        self.call_id = call_id
        self.tool_name = tool_name
        self.operation_id: str | None = None
        self.call: Called | None = None
        self.call_at = 0
        self.dispatch: Dispatched | None = None
        self.dispatch_at = 0
        self.response: Responded | None = None
        self.response_at = 0
        self.recovery: list[tuple[int, RecoveryFact]] | None = None
        self.codes: tuple[LedgerIssue | ParkReason, ...] = ()

    def copy(self, owner: object) -> OperationRecord:
        """A record with the same facts that another scanner may change."""
        made = object.__new__(OperationRecord)  # each attribute once: T1 and T2 pass here
        made.key, made.index, made.owner = self.key, self.index, owner
        made.call_id, made.tool_name, made.operation_id = self.call_id, self.tool_name, self.operation_id
        made.call, made.call_at = self.call, self.call_at
        made.dispatch, made.dispatch_at = self.dispatch, self.dispatch_at
        made.response, made.response_at = self.response, self.response_at
        made.recovery = None if self.recovery is None else self.recovery.copy()
        made.codes = self.codes
        return made

    @property
    def mode(self) -> str | None:
        """The recovery mode that T1 recorded, None before T1."""
        return None if self.dispatch is None else self.dispatch.mode

    @property
    def is_open(self) -> bool:
        """Dispatched, and no fact of the ledger has answered it."""
        return self.dispatch is not None and self.response is None
