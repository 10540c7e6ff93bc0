"""Failpoints in production."""

from __future__ import annotations

from ...ports.failpoints import Failpoints


class NoFailpoints(Failpoints):
    """Does nothing."""

    def hit(self, point: str) -> None:
        """Return at once."""
