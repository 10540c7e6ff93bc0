"""The policy that asks a person at another terminal: the call waits until `safepoint approve` or `deny` says."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

from ...ports.cancel_signal import CancelSignal
from ...ports.permission_gate import Allowed, PermissionAnswer, PermissionGate, PermissionRequest, Undecided
from .display import question_lines
from .terminal import TextOutput

_POLL_SECONDS = 0.1


class ElsewhereGate(PermissionGate):
    """Shows the question and how to answer it, and waits; the answer is recorded by whoever gives it.

    Args:
        ways: the lines that say how to answer a question.
        deaf: why nobody elsewhere can be heard, None while they can.
        output: where the question is written; standard error by default, so that standard output stays for results.
    """

    def __init__(
        self,
        ways: Callable[[PermissionRequest], Iterable[str]],
        deaf: Callable[[], str | None] = lambda: None,
        output: TextOutput | None = None,
    ) -> None:
        self._ways = ways
        self._deaf = deaf
        self._output = output

    def policy_id(self) -> str:
        """Name the policy: a person is asked, wherever that person sits."""
        return "ask"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Permit what only reads."""
        return Allowed("policy") if request.only_reads else None

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Wait until an answer was recorded, or the run is stopped."""
        if (answer := self.by_policy(request)) is not None:
            return answer
        if (deaf := self._deaf()) is not None:
            return Undecided(deaf)
        output = sys.stderr if self._output is None else self._output
        output.write("\n".join((*question_lines(request), *self._ways(request))) + "\n")
        output.flush()
        while not cancel.is_set():
            time.sleep(_POLL_SECONDS)
        return Undecided("nobody answered here")
