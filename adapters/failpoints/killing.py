"""Failpoints that kill or stop the process, for the crash harness. SPEC section 20.

Honoured only with SAFEPOINT_TEST_HOOKS=1:

- SAFEPOINT_FAILPOINT is a list, separated by commas, of `POINT` or `POINT:N`: die at the Nth hit of that point, by
  default the first. `random:N` dies at the Nth hit of all points together. A `POINT` stands for its parts, too (`P11`
  for `P11.claim` and the others), and one that ends with `*` for all that begin so.
- SAFEPOINT_FAILPOINT_STOP is such a list, too: stop there by SIGSTOP until somebody sends SIGCONT, so that the world
  can be changed at this very instant.
- SAFEPOINT_FAILPOINT_TRACE names a file; each hit appends its point to it as one line, before anything else happens.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...ports.failpoints import Failpoint, Failpoints
from .null import NoFailpoints

HOOKS_VARIABLE = "SAFEPOINT_TEST_HOOKS"
POINTS_VARIABLE = "SAFEPOINT_FAILPOINT"
STOP_VARIABLE = "SAFEPOINT_FAILPOINT_STOP"
TRACE_VARIABLE = "SAFEPOINT_FAILPOINT_TRACE"
_ANY_POINT = "random"


class Trigger(NamedTuple):
    """Die, or stop, at the `nth` hit, from 1, of the points that it stands for."""

    point: str
    nth: int

    def stands_for(self, point: str) -> bool:
        """True when a hit of `point` counts."""
        if self.point == _ANY_POINT:
            return True
        if self.point.endswith("*"):
            return point.startswith(self.point[:-1])
        return point == self.point or point.startswith(f"{self.point}.")


class MalformedFailpoint(ValueError):
    """SAFEPOINT_FAILPOINT or SAFEPOINT_FAILPOINT_STOP cannot be read; a harness must not go on without its crash."""

    def __init__(self, variable: str, text: str) -> None:
        super().__init__(f"{variable} holds {text!r}; it takes POINT, POINT:N or random:N, separated by commas")
        self.text = text


def die_by_sigkill() -> None:
    """End this process as a crash does: no handler, no cleanup, no other thread goes on. Never returns."""
    os.kill(os.getpid(), signal.SIGKILL)
    while True:  # the signal may reach another thread first
        time.sleep(1)


def stop_by_sigstop() -> None:
    """Stop all threads of this process; returns when somebody continues it."""
    # To this very thread: another one could take a signal to the process, and this one go on into its transaction.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    time.sleep(0.01)  # where a system tells the process all the same, this thread is stopped here


class KillingFailpoints(Failpoints):
    """Counts hits, stops where that is asked, and dies at the first trigger that is reached."""

    def __init__(
        self,
        triggers: Sequence[Trigger],
        trace: str | None = None,
        die: Callable[[], None] = die_by_sigkill,
        stops: Sequence[Trigger] = (),
        stop: Callable[[], None] = stop_by_sigstop,
    ) -> None:
        self._watched = [*((trigger, stop) for trigger in stops), *((trigger, die) for trigger in triggers)]
        self._hits = [0] * len(self._watched)
        self._trace = (
            None if trace is None else os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        )
        self._lock = threading.Lock()

    def hit(self, point: str) -> None:
        """Write the point to the trace, count it, and stop or die if its time has come."""
        with self._lock:  # held meanwhile, so that no other thread gets past a point
            if self._trace is not None:
                os.write(self._trace, f"{point}\n".encode())
            for index, (trigger, act) in enumerate(self._watched):
                if trigger.stands_for(point):
                    self._hits[index] += 1
                    if self._hits[index] == trigger.nth:
                        act()


def failpoints_from(environment: Mapping[str, str]) -> Failpoints:
    """Make the failpoints that the environment asks for; without SAFEPOINT_TEST_HOOKS=1 it is not even read.

    Raises:
        MalformedFailpoint: with the hooks on, a variable cannot be read.
    """
    if environment.get(HOOKS_VARIABLE) != "1":
        return NoFailpoints()
    triggers, stops = (_triggers(name, environment.get(name, "")) for name in (POINTS_VARIABLE, STOP_VARIABLE))
    trace = environment.get(TRACE_VARIABLE)
    if not triggers and not stops and trace is None:
        return NoFailpoints()
    return KillingFailpoints(triggers, trace, stops=stops)


def _triggers(variable: str, texts: str) -> list[Trigger]:
    return [_trigger(variable, text) for text in texts.split(",")] if texts else []


def _trigger(variable: str, text: str) -> Trigger:
    point, colon, count = text.strip().rpartition(":")
    if not colon:
        point, count = count, "1"
    if not point or not count.isascii() or not count.isdigit() or int(count) < 1 or (point == _ANY_POINT and not colon):
        raise MalformedFailpoint(variable, text)
    if point.startswith("P") and not any(named.startswith(point.rstrip("*")) for named in Failpoint):
        raise MalformedFailpoint(variable, text)  # a mistyped name would never be hit, and a crash test would pass idly
    return Trigger(point, int(count))
