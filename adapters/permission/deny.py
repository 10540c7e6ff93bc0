"""The policy that asks nobody and permits nothing but reading."""

from __future__ import annotations

from ...ports.cancel_signal import CancelSignal
from ...ports.permission_gate import Allowed, AskReason, Denied, PermissionAnswer, PermissionGate, PermissionRequest


class DenyGate(PermissionGate):
    """Refuses every call that may have an effect; the run goes on and the model is told."""

    def policy_id(self) -> str:
        """Name the policy."""
        return "deny"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer:
        """Refuse, unless the call only reads."""
        if request.only_reads:
            return Allowed("policy")
        if request.reason is AskReason.REPEAT_OF_UNSETTLED_EFFECT:
            return Denied("policy", "it may repeat an effect, and nobody can be asked")
        return Denied("policy", f"the policy does not permit {request.tool_name}")

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Refuse, unless the call only reads."""
        return self.by_policy(request)
