"""Callers that meet at the writer: one of them leads and writes for all that wait. SPEC section 7, group commit.

A lone caller leads at once, in its own thread. Whoever comes meanwhile waits on a gate of its own, not on the writer's
lock: it is woken when it has its answer, or to lead the next group. So groups are as large as what came together.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from .commit_round import Ticket

_OPEN = threading.Lock()
"""The gate of those who need not wait."""


class _Call:
    """Tickets of one call, and the gate that its thread waits at."""

    __slots__ = ("gate", "tickets")

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        self.tickets = tickets
        self.gate = _OPEN

    def close(self) -> None:
        """Make whoever waits at the gate wait: it is let through by a release."""
        self.gate = threading.Lock()
        self.gate.acquire()


class CallerQueue:
    """Lets one caller at a time write, for itself and for all that wait; thread-safe.

    Args:
        write: answers every ticket that it is given; raises only what ends its thread.
    """

    def __init__(self, write: Callable[[Sequence[Ticket]], None]) -> None:
        self._write = write
        self._door = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._leader: _Call | None = None

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def answer(self, tickets: Sequence[Ticket]) -> None:
        """Return when the tickets have their answers; in their order they are decided."""
        call = _Call(tickets)
        try:
            with self._door:
                alone = self._leader is None
                if alone:
                    self._leader = call
                else:
                    call.close()
                    self._waiting.append(call)
            if alone:
                self._write_for(call, (call,))
                return
            call.gate.acquire()
            if self._leader is call:
                self._lead(call)
        except BaseException:
            self._withdraw(call)
            raise

    def _lead(self, leader: _Call) -> None:
        """Write for this caller and for all that wait now; then let the first of those who came meanwhile lead."""
        with self._door:
            group = (*self._waiting,)
            self._waiting.clear()
        self._write_for(leader, group)

    def _write_for(self, leader: _Call, group: tuple[_Call, ...]) -> None:
        try:
            self._write(leader.tickets if len(group) == 1 else [ticket for call in group for ticket in call.tickets])
        finally:
            for call in group:
                if call is not leader:
                    call.gate.release()
            self._pass_on()

    def _pass_on(self) -> None:
        with self._door:
            self._leader = successor = self._waiting[0] if self._waiting else None
        if successor is not None:
            successor.gate.release()

    def _withdraw(self, call: _Call) -> None:
        """A thread was interrupted while it waited: it asks no more, and leads nobody."""
        with self._door:
            if call in self._waiting:
                self._waiting.remove(call)
            leads = self._leader is call
        if leads:
            self._pass_on()
