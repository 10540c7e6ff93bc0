"""The policy that permits tools by name, and leaves the rest to another."""

from __future__ import annotations

from collections.abc import Iterable

from ...domain.permission_policy import name_of
from ...ports.cancel_signal import CancelSignal
from ...ports.permission_gate import Allowed, AskReason, PermissionAnswer, PermissionGate, PermissionRequest


class AllowListGate(PermissionGate):
    """Permits what is listed; what is not, and every repeat of an unsettled effect, is decided by `otherwise`. F9.

    Args:
        names: tools, by exact name; ignored with `allow_all`.
        otherwise: decides all else.
        allow_all: permits every tool.
    """

    def __init__(self, names: Iterable[str], otherwise: PermissionGate, *, allow_all: bool = False) -> None:
        self._names = frozenset(names)
        self._otherwise = otherwise
        self._allow_all = allow_all

    def policy_id(self) -> str:
        """Name the policy: the same for the same names in any order."""
        return name_of(self._names, self._otherwise.policy_id(), allow_all=self._allow_all)

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Permit what is listed; of the rest, say what the other policy says."""
        if request.reason is AskReason.POLICY and (self._allow_all or request.tool_name in self._names):
            return Allowed("policy")
        return self._otherwise.by_policy(request)

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Permit what is listed; leave the rest to the other policy."""
        answer = self.by_policy(request)
        return self._otherwise.decide(request, cancel) if answer is None else answer
