"""The sessions of child runs, and of theirs. SPEC section 11."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..domain.identifiers import SessionId
from ..ports.views import FamilyViews
from .paging import every

GENERATIONS_MAX: Final = 64
"""How many generations are followed."""


def children_of(views: FamilyViews, session_id: SessionId) -> Iterator[SessionId]:
    """The sessions of the child runs that a session started."""
    return every(lambda after: views.children(session_id, after=after), None, lambda child: child)


def descendants_of(views: FamilyViews, session_id: SessionId) -> Iterator[SessionId]:
    """The sessions of a session's child runs, and of theirs: children before their parents, each once, itself never."""
    return _below(views, session_id, {session_id}, GENERATIONS_MAX)


def _below(
    views: FamilyViews, session_id: SessionId, seen: set[SessionId], generations_left: int
) -> Iterator[SessionId]:
    if generations_left == 0:
        return
    for child in children_of(views, session_id):
        if child not in seen:
            seen.add(child)
            yield from _below(views, child, seen, generations_left - 1)
            yield child
