"""Which sessions wait for repair, and in which order: claims, children before their parents, the rest. SPEC section 11.

Control rows say whom to look at; views only sort, so that where they are damaged nothing but the order is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..domain.identifiers import SessionId
from ..ports.incarnations import Liveness
from ..ports.session_owners import Ownership
from ..ports.store_keeping import StoreKeeping
from ..ports.views import PAGE_MAX, FamilyViews
from .ownership import SessionOwnership
from .repair_report import RepairReport

BATCH_MAX = 250
"""How many sessions are repaired in one transaction; the ledger keeps the states of them all."""

ItemT = TypeVar("ItemT")


@dataclass(slots=True)
class _Found:
    """What must come before ordinary runs."""

    claims: list[Ownership] = field(default_factory=list)
    children: dict[SessionId, tuple[Ownership, SessionId]] = field(default_factory=dict)


class RepairOrder:
    """Finds the sessions whose owner is dead, or is this process and does not use them.

    Args:
        ownership: tells which may be taken.
        keeping: lists who owns what.
        views: tell claims and children apart.
    """

    def __init__(self, ownership: SessionOwnership, keeping: StoreKeeping, views: FamilyViews) -> None:
        self._ownership = ownership
        self._keeping = keeping
        self._views = views

    def batches(self, report: RepairReport) -> Iterator[Sequence[Ownership]]:
        """All of them in their order, at most `BATCH_MAX` together; what is left alone is counted first."""
        found = self._survey(report)
        first = {row.session_id for row in found.claims} | found.children.keys()
        yield from in_batches(found.claims)
        yield from in_batches(_deepest_first(found.children))
        for page in self._pages():
            ordinary = [row for row in page if row.session_id not in first and self._ownership.may_be_taken(row)]
            yield from in_batches(ordinary)

    def _survey(self, report: RepairReport) -> _Found:
        """Count what is left alone, and find what comes first."""
        found = _Found()
        for page in self._pages():
            rows = {row.session_id: row for row in page if self._ownership.may_be_taken(row)}
            for row in page:
                if row.session_id not in rows:
                    self._count_left(row, report)
            for kinship in self._views.kinships(list(rows)):
                row = rows[kinship.session_id]
                if kinship.unstarted:
                    found.claims.append(row)
                elif kinship.parent_session_id is not None:
                    found.children[row.session_id] = (row, kinship.parent_session_id)
        return found

    def _count_left(self, row: Ownership, report: RepairReport) -> None:
        assert row.incarnation_id is not None
        if self._ownership.liveness_of(row.incarnation_id) is Liveness.COULD_NOT_LOOK:
            report.not_seen += 1
        else:
            report.alive += 1

    def _pages(self) -> Iterator[Sequence[Ownership]]:
        after = ""
        while page := self._keeping.owned_sessions(after=after, limit=PAGE_MAX):
            yield page
            after = page[-1].session_id


def in_batches(items: Sequence[ItemT]) -> Iterator[Sequence[ItemT]]:
    """As many as are repaired in one transaction."""
    for start in range(0, len(items), BATCH_MAX):
        yield items[start : start + BATCH_MAX]


def _deepest_first(children: Mapping[SessionId, tuple[Ownership, SessionId]]) -> list[Ownership]:
    """Children before the parents that are children themselves."""
    depths: dict[SessionId, int] = {}
    for session_id in children:
        path, at = [], session_id
        while at in children and at not in depths and at not in path:  # a circle ends where it began
            path.append(at)
            at = children[at][1]
        depth = depths.get(at, 0)
        for one in reversed(path):
            depth += 1
            depths[one] = depth
    return [children[one][0] for one in sorted(children, key=lambda one: -depths[one])]
