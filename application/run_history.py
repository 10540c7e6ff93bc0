"""What the provider of a run is shown next: the history that it was begun with, and what it recorded since. SPEC 12."""

from __future__ import annotations

from ..domain.replay.blocks import SegmentBlocks
from ..domain.replay.history import History
from ..domain.replay.items import Item
from .run_recorder import RunRecorder


class RunHistory:
    """The growing history of one run; asking for it costs what is new.

    Args:
        recorder: knows what is durable.
        shown: what stands before the run's own items.
    """

    def __init__(self, recorder: RunRecorder, shown: tuple[Item, ...]) -> None:
        self._recorder = recorder
        self._before = History.shown(shown)
        self._blocks = SegmentBlocks()
        self._fed = 0

    def items(self) -> tuple[Item, ...]:
        """All of it, in order; calls that have no answer yet are not in it."""
        events = self._recorder.events
        for event in events[self._fed :]:
            self._blocks.feed(event)
        self._fed = len(events)
        return self._before.followed_by(self._blocks.items())
