"""Keeps what watches from changing what it watches. SPEC section 18 and R15."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence

from ...ports.lifecycle_sink import LifecycleEvent, LifecycleSink


class GuardedSink(LifecycleSink):
    """Passes events on to several sinks; one that fails is noticed once, and neither the others nor the caller are
    disturbed.

    Args:
        sinks: told in this order.
        notice: called once per failing sink with its class name and that of its first error; by default a warning in
            the log.
    """

    def __init__(self, sinks: Sequence[LifecycleSink], notice: Callable[[str, str], None] | None = None) -> None:
        self._sinks = tuple(sinks)
        self._notice = _warn if notice is None else notice
        self._noticed: set[int] = set()

    def record(self, event: LifecycleEvent) -> None:
        """Tell each sink; never raises."""
        for place, sink in enumerate(self._sinks):
            try:
                sink.record(event)
            except Exception as error:  # noqa: BLE001 (whatever a sink does, the run goes on)
                if place not in self._noticed:
                    self._noticed.add(place)
                    self._tell(type(sink).__name__, type(error).__name__)

    def _tell(self, sink: str, error: str) -> None:
        with contextlib.suppress(Exception):  # there is nobody left to tell
            self._notice(sink, error)


def _warn(sink: str, error: str) -> None:
    logging.getLogger("safepoint.lifecycle").warning(
        "lifecycle sink %s failed with %s; its errors are ignored", sink, error
    )
