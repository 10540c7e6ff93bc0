"""From segments to one history: concatenated, for one provider, with every call id used once. SPEC section 12."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from ..identifiers import ToolCallId
from .digest import ReplayHasher
from .items import CallItem, Item, ResultItem
from .origin import Origin, without_blobs
from .segment import Segment

PROJECTION_VERSION = 1
"""The version that new histories are made with; see `versions` for those that stay executable."""
_DISTINCT_ID_STEM_MAX = 40  # providers bound the length of a call id, some at 64


@dataclass(frozen=True, slots=True)
class Replay:
    """The exact history that a provider will see.

    Attributes:
        items: in order; not shown in its `repr`, which somebody may log.
        digest: names exactly these items, made by this version.
        version: the projection version.
        blobs_left_out: segments (from 0) whose opaque blobs another provider, model or account must not get.
        renamed: call ids that were used before and what they are called here, in order.
    """

    items: tuple[Item, ...] = field(repr=False)
    digest: str
    version: int = PROJECTION_VERSION
    blobs_left_out: tuple[int, ...] = ()
    renamed: tuple[tuple[ToolCallId, ToolCallId], ...] = ()


class History:
    """A history while segments are added; what a segment becomes depends on those before it alone."""

    def __init__(self, target: Origin | None, version: int = PROJECTION_VERSION) -> None:
        """Start empty.

        Args:
            target: who will be shown the history; None when nobody will, and blobs stay.
            version: the projection version that is digested.
        """
        self._target = target
        self._hasher = ReplayHasher(version)
        self._items: list[Item] = []
        self._used: dict[str, int] = {}
        self._segments = 0
        self._blobs_left_out: list[int] = []
        self._renamed: list[tuple[ToolCallId, ToolCallId]] = []

    def add(self, segment: Segment) -> None:
        """Append a segment that is not blocked."""
        items: Sequence[Item] = segment.items
        if self._target is not None and segment.origin != self._target:
            shown = without_blobs(items)
            if len(shown) != len(items) or any(a is not b for a, b in zip(shown, items, strict=True)):
                self._blobs_left_out.append(self._segments)
            items = shown
        items, renamed = _with_distinct_ids(items, self._used)
        self._renamed += renamed.items()
        self._segments += 1
        self._items += items
        self._hasher.add(items)

    @classmethod
    def shown(cls, items: Sequence[Item]) -> Self:
        """A history that was made before, for a run that goes on from it; its digest is not asked for."""
        history = cls(None)
        history._items += items
        for item in items:
            if type(item) is CallItem:
                history._used[item.call_id] = history._used.get(item.call_id, 0) + 1
        return history

    def followed_by(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """The history with the items of the run that now goes on, which are not added: next time there are more."""
        known = self._used
        if any(type(item) is CallItem and item.call_id in known for item in items):
            items, _ = _with_distinct_ids(items, known.copy())
        return (*self._items, *items)

    @property
    def digest(self) -> str:
        """Digest of what was added so far."""
        return self._hasher.hexdigest()

    def replay(self) -> Replay:
        """What was added so far, as a value."""
        return Replay(
            tuple(self._items),
            self.digest,
            self._hasher.version,
            tuple(self._blobs_left_out),
            tuple(self._renamed),
        )


def replay(segments: Iterable[Segment], target: Origin | None, version: int = PROJECTION_VERSION) -> Replay:
    """Concatenate segments, oldest first: those of the recorded context, then those of the lineage.

    Args:
        segments: projected alone, none of them blocked.
        target: who will be shown the history.
        version: the projection version.
    """
    history = History(target, version)
    for segment in segments:
        history.add(segment)
    return history.replay()


def _with_distinct_ids(
    items: Sequence[Item], used: dict[str, int]
) -> tuple[Sequence[Item], dict[ToolCallId, ToolCallId]]:
    """The items with every call id made distinct from those in `used`, which receives them, and what was renamed."""
    renamed: dict[ToolCallId, ToolCallId] = {}
    for item in items:
        if type(item) is CallItem:
            if item.call_id in used:
                renamed[item.call_id] = _distinct(item.call_id, used)
            else:
                used[item.call_id] = 1
    if not renamed:
        return items, renamed
    distinct = [
        item._replace(call_id=renamed[item.call_id])
        if (type(item) is CallItem or type(item) is ResultItem) and item.call_id in renamed
        else item
        for item in items
    ]
    return distinct, renamed


def _distinct(call_id: ToolCallId, used: dict[str, int]) -> ToolCallId:
    while True:
        used[call_id] += 1
        made = f"{call_id[:_DISTINCT_ID_STEM_MAX]}_{used[call_id]}"
        if made not in used:
            used[made] = 1
            return ToolCallId(made)
