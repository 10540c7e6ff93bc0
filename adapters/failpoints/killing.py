"""Failpoints that kill the process with SIGKILL, for the crash harness. SPEC section 20.

Honoured only with SAFEPOINT_TEST_HOOKS=1:

- SAFEPOINT_FAILPOINT is a list, separated by commas, of `POINT` or `POINT:N`: die at the Nth hit of that point, by
default the
  first. `random:N` dies at the Nth hit of all points together. A `POINT` that ends with `*` stands for all that begin
  so.
- SAFEPOINT_FAILPOINT_TRACE names a file; each hit appends its point to it as one line, before anything else happens.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...ports.failpoints import Failpoints
from .null import NoFailpoints

HOOKS_VARIABLE = "SAFEPOINT_TEST_HOOKS"
POINTS_VARIABLE = "SAFEPOINT_FAILPOINT"
TRACE_VARIABLE = "SAFEPOINT_FAILPOINT_TRACE"
_ANY_POINT = "random"


class Trigger(NamedTuple):
    """Die at the `nth` hit, from 1, of the points that it stands for."""

    point: str
    nth: int

    def stands_for(self, point: str) -> bool:
        """True when a hit of `point` counts."""
        if self.point == _ANY_POINT:
            return True
        return point.startswith(self.point[:-1]) if self.point.endswith("*") else point == self.point


class MalformedFailpoint(ValueError):
    """SAFEPOINT_FAILPOINT cannot be read; a harness must not go on without its crash."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{POINTS_VARIABLE} holds {text!r}; it takes POINT, POINT:N or random:N, separated by commas")
        self.text = text


def die_by_sigkill() -> None:
    """End this process as a crash does: no handler, no cleanup, no other thread goes on. Never returns."""
    os.kill(os.getpid(), signal.SIGKILL)
    while True:  # the signal may reach another thread first
        time.sleep(1)


class KillingFailpoints(Failpoints):
    """Counts hits and dies at the first trigger that is reached."""

    def __init__(
        self, triggers: Sequence[Trigger], trace: str | None = None, die: Callable[[], None] = die_by_sigkill
    ) -> None:
        self._triggers = tuple(triggers)
        self._hits = [0] * len(self._triggers)
        self._trace = (
            None if trace is None else os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        )
        self._die = die
        self._lock = threading.Lock()

    def hit(self, point: str) -> None:
        """Write the point to the trace, count it, and die if its time has come."""
        with self._lock:  # held while dying, so that no other thread gets past a point meanwhile
            if self._trace is not None:
                os.write(self._trace, f"{point}\n".encode())
            for index, trigger in enumerate(self._triggers):
                if trigger.stands_for(point):
                    self._hits[index] += 1
                    if self._hits[index] == trigger.nth:
                        self._die()


def failpoints_from(environment: Mapping[str, str]) -> Failpoints:
    """Make the failpoints that the environment asks for; without SAFEPOINT_TEST_HOOKS=1 it is not even read.

    Raises:
        MalformedFailpoint: with the hooks on, SAFEPOINT_FAILPOINT cannot be read.
    """
    if environment.get(HOOKS_VARIABLE) != "1":
        return NoFailpoints()
    points, trace = environment.get(POINTS_VARIABLE, ""), environment.get(TRACE_VARIABLE)
    if not points and trace is None:
        return NoFailpoints()
    return KillingFailpoints([_trigger(text) for text in points.split(",")] if points else [], trace)


def _trigger(text: str) -> Trigger:
    point, colon, count = text.strip().rpartition(":")
    if not colon:
        point, count = count, "1"
    if not point or not count.isascii() or not count.isdigit() or int(count) < 1 or (point == _ANY_POINT and not colon):
        raise MalformedFailpoint(text)
    return Trigger(point, int(count))
