"""Ids as UUIDv7 (RFC 9562, section 5.7): sortable by time, and in order within one process."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable

from ...ports.ids import Ids, IdT

_NANOSECONDS_PER_MILLISECOND = 1_000_000
_FORM = "%08x-%04x-7%03x-%04x-%012x"
"""Milliseconds in 48 bits, the version, the rest of the tick, and the randomness behind the variant."""
_BITS = (1 << 62) - 1
_LAST = (1 << 48) - 1
_DRAWN = 64


class Uuid7Ids(Ids):
    """Takes 60 bits from the clock, in steps of about 244 ns and never twice the same, and 62 from the system's
    randomness.
    """

    def __init__(self, nanoseconds: Callable[[], int] = time.time_ns) -> None:
        self._nanoseconds = nanoseconds
        self._lock = threading.Lock()
        self._last_tick = 0
        self._process = 0
        self._randomness: list[int] = []

    def fresh(self, kind: Callable[[str], IdT]) -> IdT:
        """Return a new id of the given type, greater than all that this object made before, even if the clock went
        back.
        """
        milliseconds, rest = divmod(self._nanoseconds(), _NANOSECONDS_PER_MILLISECOND)
        tick = milliseconds << 12 | rest * 4096 // _NANOSECONDS_PER_MILLISECOND
        with self._lock:
            if tick <= self._last_tick:
                tick = self._last_tick + 1
            self._last_tick = tick
            if not self._randomness or self._process != os.getpid():
                self._draw()
            random = self._randomness.pop() & _BITS
        return kind(_FORM % (tick >> 28, tick >> 12 & 0xFFFF, tick & 0xFFF, random >> 48 | 0x8000, random & _LAST))

    def _draw(self) -> None:
        """Ask the system for the randomness of the next ids; a process that was forked off draws its own."""
        self._process = os.getpid()
        self._randomness = list(struct.unpack(f"={_DRAWN}Q", os.urandom(8 * _DRAWN)))
