"""Failpoints that are written down and do nothing else."""

from __future__ import annotations

from collections.abc import Callable

from ...ports.failpoints import Failpoints


class RecordingFailpoints(Failpoints):
    """Keeps the points in the order of their hits.

    Args:
        at_hit: called with each point, for tests that let something happen at that instant.
    """

    def __init__(self, at_hit: Callable[[str], None] = lambda _: None) -> None:
        self.hits: list[str] = []
        self.at_hit = at_hit

    def hit(self, point: str) -> None:
        """Write the point down."""
        self.hits.append(str(point))
        self.at_hit(str(point))
