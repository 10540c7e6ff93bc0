"""What a person and the tools around a store ask of it as a whole: can it be trusted, what is in it. SPEC sections 6
and 11.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from ..domain.projections import Column
from .session_owners import Ownership


class Trust(StrEnum):
    """Whether a store can vouch that its facts are complete. All but `ok` may be read and not written.

    A copy whose own anchor says that there was more than it holds, or other than that, is `copied_behind_anchor`; a
    copy without an anchor, or beside that of another store, is `copied`.
    """

    OK = "ok"
    BEHIND_ANCHOR = "behind_anchor"
    ANCHOR_MISSING = "anchor_missing"
    ANCHOR_MISMATCH = "anchor_mismatch"
    COPIED = "copied"
    COPIED_BEHIND_ANCHOR = "copied_behind_anchor"

    @property
    def copied(self) -> bool:
        """True where the store is not where it was made or adopted."""
        return self in {Trust.COPIED, Trust.COPIED_BEHIND_ANCHOR}

    @property
    def end_may_be_lost(self) -> bool:
        """True where no anchor vouches for the end of the store: it is never said to be in order (F1)."""
        return self not in {Trust.OK, Trust.COPIED}


class StoreCondition(NamedTuple):
    """How a store stands.

    `detail` is a sentence for a person; `anchored_events` is how many events there were when the anchor was last raised
    (None where it says nothing).
    """

    trust: Trust
    detail: str
    store_id: str
    generation: int
    events: int
    anchored_events: int | None


class Rebuilt(NamedTuple):
    """What a rebuild did.

    Attributes:
        events: how many were read.
        rows: how many were written; a store that shows some of its events as they are writes fewer.
        unreadable: events that no row could be made of; `verify` names them.
    """

    events: int
    rows: int
    unreadable: int


class ProjectionDifference(NamedTuple):
    """A row that is not what the events make: `found` or `expected` is None where there is no such row.

    An empty `key` stands for the whole view: it is gone, cannot be read, or is not what this program makes.
    """

    table: str
    key: tuple[Column, ...]
    found: Mapping[str, Column] | None
    expected: Mapping[str, Column] | None


class StoreKeeping(Protocol):
    """The store as a whole.

    Raises (all methods): StoreUnavailable when it could not look; StoreDamaged when pages cannot be read.
    """

    @abstractmethod
    def condition(self) -> StoreCondition:
        """Look at the store and its anchor now."""

    @abstractmethod
    def adopt(self, *, by: str, note: str, at: str) -> StoreCondition:
        """Accept the store as it stands, on a person's word: the generation is raised, and with it all that is in the
        store becomes foreign for good. Recorded.

        Args:
            by: the person.
            note: why.
            at: the time, as events carry it.
        """

    @abstractmethod
    def streams(self, *, after: str = "", limit: int = 1000) -> Sequence[str]:
        """Names of streams above `after`, in order, at most `limit` (1 to 10,000); empty at the end."""

    @abstractmethod
    def faults(self) -> Sequence[str]:
        """What is wrong with pages, indexes and control rows, each as a sentence; reads everything, changes nothing."""

    @abstractmethod
    def owned_sessions(self, *, after: str = "", limit: int = 1000) -> Sequence[Ownership]:
        """Sessions that an incarnation owns, by id above `after`, at most `limit` (1 to 10,000); empty at the end."""


class Projections(Protocol):
    """The views beside the events. A projection that disagrees is rebuilt, never believed. SPEC section 7."""

    @abstractmethod
    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> Rebuilt:
        """Drop the views and make them again from the events, in one transaction; readers see the old rows until it
        ends.

        An event that cannot be read makes a bare row of its session or run, so that a damaged one is still listed.

        Args:
            progress: told now and then how many events of how many are done.

        Raises:
            StoreUnavailable, StoreFull, StoreDamaged: nothing was changed.
        """

    @abstractmethod
    def differences(self) -> Iterator[ProjectionDifference]:
        """Rows that are not what the events make, in one consistent view; changes nothing."""
