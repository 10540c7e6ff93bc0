"""Ids as UUIDv7 (RFC 9562, section 5.7): sortable by time, and in order within one process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ...ports.ids import Ids, IdT

_NANOSECONDS_PER_MILLISECOND = 1_000_000
_TICKS_PER_MILLISECOND = 1 << 12
_TICK = _TICKS_PER_MILLISECOND - 1
_VARIANT = bytes(byte & 0x3F | 0x80 for byte in range(256))
"""What a byte becomes when its first two bits say the variant."""
_BYTES, _DRAWN = 8, 64


class Uuid7Ids(Ids):
    """Takes 60 bits from the clock, in steps of about 244 ns and never twice the same, and 62 from the system's
    randomness.
    """

    def __init__(self, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        self._nanoseconds = nanoseconds
        self._lock = threading.Lock()
        self._last_tick = 0
        self._forks = _forks
        self._millisecond = -1
        self._front = ""
        self._backs: list[str] = []

    def fresh(self, kind: Callable[[str], IdT]) -> IdT:
        """Return a new id of the given type, greater than all that this object made before, even if the clock went
        back.
        """
        tick = self._nanoseconds() * _TICKS_PER_MILLISECOND // _NANOSECONDS_PER_MILLISECOND
        with self._lock:
            if tick <= self._last_tick:
                tick = self._last_tick + 1
            self._last_tick = tick
            if tick >> 12 != self._millisecond:
                self._millisecond = tick >> 12
                self._front = f"{tick >> 28:08x}-{self._millisecond & 0xFFFF:04x}-7"
            if not self._backs or self._forks != _forks:
                self._draw()
            made = "%s%03x-%s" % (self._front, tick & _TICK, self._backs.pop())  # noqa: UP031 (half of an f-string)
        return kind(made)

    def _draw(self) -> None:
        """Ask the system for the randomness of the next ids; a process that was forked off draws its own."""
        self._forks = _forks
        drawn = bytearray(os.urandom(_BYTES * _DRAWN))
        drawn[::_BYTES] = drawn[::_BYTES].translate(_VARIANT)
        text = drawn.hex()
        self._backs = [f"{text[at : at + 4]}-{text[at + 4 : at + 16]}" for at in range(0, len(text), 2 * _BYTES)]


_forks = 0
"""How often the process was forked off, with its ancestors: asking for its number each time is a call to the system."""


def _count_fork() -> None:
    global _forks  # noqa: PLW0603 (there is one process)
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
