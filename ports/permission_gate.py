"""Who may say yes to a call before T1. SPEC F6, F9 and section 8."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from ..domain.events.event import Json
from ..domain.events.tool import RecoveryMode
from ..domain.identifiers import OperationId, RequestId, SessionId
from .cancel_signal import CancelSignal


class AskReason(StrEnum):
    """Why a call needs permission: it has an effect, or it may repeat one whose outcome is not certain."""

    POLICY = "policy"
    REPEAT_OF_UNSETTLED_EFFECT = "repeat_of_unsettled_effect"


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A question about one call; the answer is bound to `args_hash` and `contract_digest`, and to nothing shown.

    Attributes:
        arguments: for display only.
        repeats: the operation that this call would repeat, where that is the reason.
    """

    request_id: RequestId
    session_id: SessionId
    tool_name: str
    arguments: Json = field(repr=False)
    args_hash: str
    contract_digest: str
    mode: RecoveryMode
    reason: AskReason = AskReason.POLICY
    repeats: OperationId | None = None

    @property
    def only_reads(self) -> bool:
        """True when nobody needs to be asked."""
        return self.mode is RecoveryMode.REPLAY_SAFE and self.reason is AskReason.POLICY


class Allowed(NamedTuple):
    """The call may be dispatched, once. `by` names the person or policy, for the record."""

    by: str


class Denied(NamedTuple):
    """The call is refused; `why` is told to the model."""

    by: str
    why: str


class Undecided(NamedTuple):
    """Nobody answered, and a person still may, later and from elsewhere: the question stays open."""

    why: str


PermissionAnswer: TypeAlias = Allowed | Denied | Undecided


class PermissionGate(Protocol):
    """Answers questions about calls. Several may be asked at once, from several threads.

    A `replay_safe` call is never asked about, and allowed where it is asked about for POLICY. Only a person may allow a
    REPEAT_OF_UNSETTLED_EFFECT: a list or a default never does. An answer holds for its own request, in whatever order
    they come.
    """

    @abstractmethod
    def policy_id(self) -> str:
        """Name the policy: equal for equal policies, in every process; 1 to 2,000 characters, and not `unknown`.

        Part of the execution profile, where `unknown` says that no policy was recorded.
        """

    @abstractmethod
    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Answer at once and without a person, or None where a person must be asked; never Undecided."""

    @abstractmethod
    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Answer as `by_policy` does, or wait for a person. No failure to ask is ever an Allowed.

        Args:
            cancel: when it is set, whoever waits gives up soon with Undecided.
        """
