"""Tells P5 and P10 of the crash contract from all other commits: they are named by what is about to be committed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from ...domain.events.event import Event
from ...domain.events.tool import ToolRecoveryDecided, ToolResponded
from ...ports.event_store import Commit, CommitAnswer, EventReader, EventStore
from ...ports.failpoints import Failpoint, Failpoints

BEFORE_COMMIT: Final = "store.before_commit"


class StorePoints:
    """Passes the instants of a store's transactions on, and says P5 or P10 right before the COMMIT that it is about."""

    def __init__(self, failpoints: Failpoints) -> None:
        self._failpoints = failpoints
        self._about = threading.local()

    def on_point(self, point: str) -> None:
        """Be told by the store that an instant is reached, in the thread that writes."""
        if point == BEFORE_COMMIT:
            for named in getattr(self._about, "points", ()):
                self._failpoints.hit(named)
        self._failpoints.hit(point)

    def watched(self, store: EventStore) -> EventStore:
        """The same store, with what it is about to commit known here."""
        return _WatchedStore(store, self)

    def about(self, commits: Sequence[Commit]) -> None:
        """Note what this thread is about to commit."""
        events = [sealed.event for commit in commits for sealed in commit.events]
        self._about.points = tuple(point for event in events if (point := _point_of(event)) is not None)


class _WatchedStore(EventStore):
    def __init__(self, store: EventStore, points: StorePoints) -> None:
        self._store = store
        self._points = points

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        self._points.about(commits)
        try:
            return self._store.append(commits)
        finally:
            self._points.about(())

    def snapshot(self) -> AbstractContextManager[EventReader]:
        return self._store.snapshot()

    def close(self) -> None:
        self._store.close()


def _point_of(event: Event) -> Failpoint | None:
    if isinstance(event, ToolResponded) and event.operation_id is not None:
        return Failpoint.RESPONSE_WRITTEN
    return Failpoint.RECOVERY_DECIDED if isinstance(event, ToolRecoveryDecided) else None
