"""The policy that permits tools by name, and leaves the rest to another."""

from __future__ import annotations

from collections.abc import Iterable

from ...domain import canonical
from ...ports.cancel_signal import CancelSignal
from ...ports.permission_gate import Allowed, AskReason, PermissionAnswer, PermissionGate, PermissionRequest

POLICY_ID_CHARS_MAX = 2_000


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
        encoded = canonical.encode(sorted(self._names))
        listed = "*" if self._allow_all else encoded.decode()
        if len(listed) > POLICY_ID_CHARS_MAX // 2:
            listed = f"sha256:{canonical.sha256_hex(encoded)}"
        return f"allow {listed}, else {self._otherwise.policy_id()}"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Permit what is listed; of the rest, say what the other policy says."""
        if request.reason is AskReason.POLICY and (self._allow_all or request.tool_name in self._names):
            return Allowed("policy")
        return self._otherwise.by_policy(request)

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Permit what is listed; leave the rest to the other policy."""
        answer = self.by_policy(request)
        return self._otherwise.decide(request, cancel) if answer is None else answer
