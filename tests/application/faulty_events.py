"""The streams of a store in memory, which fail at the commit that a test names."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.tables import Failure
from safepoint.ports.event_store import Commit, CommitAnswer, EventReader, EventStore, Fenced


class FaultyEvents(EventStore):
    """The streams of a store, which fail where a test says.

    Attributes:
        commits: every commit that was asked for, in order.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.commits: list[Commit] = []
        self._store = store
        self._failing: list[tuple[str, Failure | None]] = []
        self._lock = threading.Lock()

    def fail_at(self, topic: str, failure: Failure | None) -> None:
        """Let the next commit that holds such an event meet a failure; None for an owner that took over."""
        with self._lock:
            self._failing.append((topic, failure))

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        """See `EventStore`."""
        with self._lock:
            self.commits.extend(commits)
            topics = {sealed.event.topic for commit in commits for sealed in commit.events}
            rule = next((rule for rule in self._failing if rule[0] in topics), None)
            if rule is not None:
                self._failing.remove(rule)
                if rule[1] is None:
                    return [Fenced(one.guard.session_id, one.guard.epoch + 1) for one in commits]
                self._store.fail_next(rule[1])
            return self._store.events.append(commits)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        """See `EventStore`."""
        return self._store.events.snapshot()

    def close(self) -> None:
        """See `EventStore`."""
        self._store.events.close()
