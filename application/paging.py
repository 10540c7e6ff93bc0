"""Lists of a store that are read page by page, so that none of them is held whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..domain.identifiers import SessionId
from ..ports.views import RunRow, SessionViews

KeyT = TypeVar("KeyT")
RowT = TypeVar("RowT")


def every(page: Callable[[KeyT], Sequence[RowT]], first: KeyT, key: Callable[[RowT], KeyT | None]) -> Iterator[RowT]:
    """All rows of a list, in its order; the next page is read when the one before was used up.

    Args:
        page: reads the rows above a key; an empty one is the end.
        first: stands below all keys.
        key: of a row; None where no row can be asked for above it, and it is the last.
    """
    rows = page(first)
    while rows:
        yield from rows
        after = key(rows[-1])
        if after is None:
            return
        rows = page(after)


def runs_of(views: SessionViews, session_id: SessionId) -> Iterator[RunRow]:
    """All runs of a session, in order of admission."""
    return every(lambda after: views.runs(session_id, after=after), 0, lambda row: row.admitted_sequence)
