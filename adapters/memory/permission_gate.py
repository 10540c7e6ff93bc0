"""Answers that a test prepared."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from ...ports.cancel_signal import CancelSignal
from ...ports.permission_gate import Allowed, PermissionAnswer, PermissionGate, PermissionRequest, Undecided


class ScriptedGate(PermissionGate):
    """Stands for a person who has made up their mind: answers by tool name and keeps what was asked.

    Args:
        answers: tool name -> answer; for any other tool the question stays open.
        policy: what `policy_id` says.
    """

    def __init__(self, answers: Mapping[str, PermissionAnswer], policy: str = "scripted") -> None:
        self.asked: list[PermissionRequest] = []
        self._answers = dict(answers)
        self._policy = policy
        self._lock = threading.Lock()

    def policy_id(self) -> str:
        """Name the policy."""
        return self._policy

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Permit what only reads."""
        return Allowed("policy") if request.only_reads else None

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Give the prepared answer."""
        if request.only_reads:
            return Allowed("policy")
        with self._lock:
            self.asked.append(request)
        if cancel.is_set():
            return Undecided("cancelled")
        return self._answers.get(request.tool_name, Undecided("nobody answered"))
