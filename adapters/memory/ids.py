"""Ids that a test can predict."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ...ports.ids import Ids, IdT


class CountingIds(Ids):
    """Makes `000001-RunId`, `000002-EventId`, …: in order, and readable in a failure.

    Args:
        prefix: put before each, to keep two makers of ids apart.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def fresh(self, kind: Callable[[str], IdT]) -> IdT:
        """Return the next id, which names its type."""
        return kind(f"{self._prefix}{next(self._numbers):06d}-{getattr(kind, '__name__', 'id')}")
