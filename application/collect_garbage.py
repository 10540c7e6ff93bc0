"""Removes what no fact names: checkpoints that were made and never accepted, and folders that were made from them for
nobody. SPEC section 16 and 20: killed half way, it is run again.

What an accepted fact names is never removed, however old it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Final

from ..domain.errors import StoreNotAdopted
from ..domain.events.event import Timestamp, after
from ..domain.identifiers import RunId
from ..ports.checkpoints import Checkpoints, KeptCheckpoint
from ..ports.clock import Clock
from ..ports.event_store import EventStore
from ..ports.failpoints import Failpoints
from ..ports.isolated_folders import IsolatedFolder, IsolatedFolders
from ..ports.store_keeping import StoreKeeping, Trust
from ..ports.views import SessionViews
from .named_content import NamedContent, every_run
from .remove_content import RemoveContent

REMOVED: Final = "gc.removed"
AGE_SECONDS_MIN: Final = 3_600
"""What is younger is never removed: between a capture and its fact there may be a process that was only slow."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """What no fact names, and is older than the limit.

    Attributes:
        kept: how many checkpoints of this store a fact names.
        foreign: how many are of other stores, which only those can judge.
        not_looked: folders whose store of checkpoints could not be looked at, and why.
        unread: where it is not empty, nothing is garbage: these runs may name it.
    """

    checkpoints: tuple[KeptCheckpoint, ...] = ()
    folders: tuple[IsolatedFolder, ...] = ()
    kept: int = 0
    foreign: int = 0
    not_looked: tuple[tuple[str, str], ...] = ()
    unread: tuple[RunId, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """What was removed, and what could not be, with the reason."""

    checkpoints: int
    folders: int
    left: tuple[tuple[str, str], ...]


class CollectGarbage:
    """Looks for orphans of one store, and removes them.

    Args:
        tag: what the names of this store's checkpoints begin with.
    """

    def __init__(
        self,
        store: EventStore,
        keeping: StoreKeeping,
        views: SessionViews,
        checkpoints: Checkpoints,
        isolated: IsolatedFolders,
        clock: Clock,
        failpoints: Failpoints,
        tag: Callable[[], str],
    ) -> None:
        self._store = store
        self._keeping = keeping
        self._views = views
        self._checkpoints = checkpoints
        self._isolated = isolated
        self._clock = clock
        self._failpoints = failpoints
        self._tag = tag

    def look(self, age_seconds: int, also: Sequence[str] = ()) -> Garbage:
        """Find what would be removed. Changes nothing.

        Args:
            age_seconds: the limit; less than `AGE_SECONDS_MIN` is taken as that.
            also: workspaces to look at beside those of the store's runs: one may have been captured for a run that
                never began.

        Raises:
            StoreNotAdopted: the store cannot vouch for its facts, so absence from it proves nothing.
            StoreError: it could not be read.
            OSError: the isolated folders could not be looked at.
        """
        condition = self._keeping.condition()
        if condition.trust is not Trust.OK:
            raise StoreNotAdopted(condition.detail)
        folders = self._isolated.folders()
        places, _ = self._named()  # where to look
        places.folders.update(also)
        found, not_looked = places.artifacts(self._checkpoints)
        named, unread = self._named()  # what was accepted while it was looked
        if unread:
            return Garbage(not_looked=not_looked, unread=unread)
        ours = {ref: one for ref, one in found.items() if PurePath(ref).name.startswith(f"{self._tag()}-")}
        orphans = [one for ref, one in ours.items() if ref not in named.refs and self._is_old(one.made_at, age_seconds)]
        unused = [one for one in folders if not named.is_used(one.path) and self._is_old(one.made_at, age_seconds)]
        accepted = sum(ref in named.refs for ref in ours)
        return Garbage(tuple(orphans), tuple(unused), accepted, len(found) - len(ours), not_looked)

    def __call__(self, garbage: Garbage) -> Collected:
        """Remove what was found; what is gone already is no error."""
        remove = RemoveContent(self._checkpoints, self._isolated, partial(self._failpoints.hit, REMOVED))
        checkpoints = remove.checkpoints((one.checkpoint.ref, one.folder) for one in garbage.checkpoints)
        folders = remove.folders(folder.path for folder in garbage.folders)
        return Collected(checkpoints, folders, tuple(remove.left))

    def _is_old(self, made_at: Timestamp, age_seconds: int) -> bool:
        return after(made_at, max(age_seconds, AGE_SECONDS_MIN)) <= self._clock.now()

    def _named(self) -> tuple[NamedContent, tuple[RunId, ...]]:
        """What all runs name, and the runs of which a fact cannot be read, so that what they name is not known."""
        named, unread = NamedContent(), list[RunId]()
        for run_id in every_run(self._keeping):
            with self._store.snapshot() as reader:
                if not named.add(reader, run_id) and not self._is_given_up(run_id):
                    unread.append(run_id)
        return named, tuple(unread)

    def _is_given_up(self, run_id: RunId) -> bool:
        row = self._views.run(run_id)
        return row is not None and row.abandoned_by is not None
