"""Lifecycle events in a list."""

from __future__ import annotations

from ...ports.lifecycle_sink import LifecycleEvent, LifecycleSink


class CollectingSink(LifecycleSink):
    """Keeps the events in order."""

    def __init__(self) -> None:
        self.events: list[LifecycleEvent] = []

    def record(self, event: LifecycleEvent) -> None:
        """Keep the event."""
        self.events.append(event)
