"""The policy that asks the person at the terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
from typing import Protocol

from ...ports.cancel_signal import CancelSignal
from ...ports.permission_gate import (
    Allowed,
    AskReason,
    Denied,
    PermissionAnswer,
    PermissionGate,
    PermissionRequest,
    Undecided,
)
from .display import question_lines

TRIES_MAX = 3
ANSWER_BYTES_MAX = 4096
_POLL_SECONDS = 0.1
_YES, _NO, _ALWAYS = frozenset({"y", "yes"}), frozenset({"n", "no"}), frozenset({"a", "always"})


class TextOutput(Protocol):
    """Where the question is written."""

    def write(self, text: str, /) -> object:
        """Write text."""

    def flush(self) -> object:
        """Show it now."""


class TerminalGate(PermissionGate):
    """Asks one question at a time, with y, n or always; without a terminal every question stays open.

    `always` holds for this tool under this contract, for the life of this object, and never for the repeat of an
    effect.

    Args:
        by: who sits there, for the record.
        input_descriptor: where the answer is read; it must be a terminal.
        output: where the question is written; standard error by default, so that standard output stays for results.
    """

    def __init__(self, by: str, input_descriptor: int = 0, output: TextOutput | None = None) -> None:
        self._by = by
        self._input = input_descriptor
        self._output = output
        self._always: set[tuple[str, str]] = set()
        self._one_at_a_time = threading.Lock()

    def policy_id(self) -> str:
        """Name the policy; who is asked, and what was answered before, do not count."""
        return "ask"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Permit what only reads and what was allowed for always."""
        if request.only_reads:
            return Allowed("policy")
        if request.reason is AskReason.POLICY and self._key(request) in self._always:
            return Allowed(self._by)
        return None

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Ask, unless it needs no asking by now."""
        while not self._one_at_a_time.acquire(timeout=_POLL_SECONDS):
            if cancel.is_set():
                return Undecided("cancelled before it was asked")
        try:
            return self.by_policy(request) or self._ask(request, cancel)
        except (OSError, termios.error) as error:
            return Undecided(f"the terminal failed: {error}")
        finally:
            self._one_at_a_time.release()

    def _ask(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        if not os.isatty(self._input):
            return Undecided("there is no terminal to ask at")
        termios.tcflush(self._input, termios.TCIFLUSH)  # what was typed before the question is no answer to it
        may_always = request.reason is AskReason.POLICY
        self._say("\n".join(question_lines(request)) + "\n")
        for _ in range(TRIES_MAX):
            self._say("Allow it? [y]es, [n]o, [a]lways: " if may_always else "Allow it? [y]es, [n]o: ")
            answer = self._read_line(cancel)
            if answer is None:
                self._say("\n")
                return Undecided("nobody answered")
            if answer in _YES:
                return Allowed(self._by)
            if answer in _NO:
                return Denied(self._by, "the user said no")
            if may_always and answer in _ALWAYS:
                self._always.add(self._key(request))
                return Allowed(self._by)
        return Undecided("no answer could be understood")

    def _read_line(self, cancel: CancelSignal) -> str | None:
        """Read one answer; None at the end of input or when cancelled."""
        line = b""
        while not cancel.is_set():
            if not select.select([self._input], [], [], _POLL_SECONDS)[0]:
                continue
            chunk = os.read(self._input, ANSWER_BYTES_MAX)
            if not chunk:
                return None
            line += chunk
            if line.endswith(b"\n") or len(line) >= ANSWER_BYTES_MAX:
                return line.decode("utf-8", "replace").strip().lower()
        return None

    def _say(self, text: str) -> None:
        output = sys.stderr if self._output is None else self._output
        output.write(text)
        output.flush()

    @staticmethod
    def _key(request: PermissionRequest) -> tuple[str, str]:
        return request.tool_name, request.contract_digest
