"""Keeps runs that another store, or another program, recorded. SPEC sections 6 and 19."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from .event_store import Commit, CommitAnswer


class RunImporter(Protocol):
    """A second way into an event store, for runs of which absence proves nothing."""

    @abstractmethod
    def import_runs(self, commit: Commit) -> CommitAnswer:
        """Keep a commit as `EventStore.append` does, and give the runs that it admits generation 0: foreign for good.

        Runs that were admitted before keep their generation. All or nothing, durable before the call returns.

        Args:
            commit: sealed events of one session, whose guard owns it, and the rows that they make.

        Raises:
            StoreUnavailable, StoreFull, StoreNotAdopted, StoreDamaged: as `EventStore.append`.
        """
