"""Where sealed commits are kept. SPEC section 7 and ADR 0007.

The ledger decides, the store keeps: atomically, in order, and refusing what does not fit. It knows streams, versions,
bytes and rows, and no rule of the domain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

from ..domain.identifiers import EventId, IncarnationId, RunId, SessionId
from ..domain.projections import Row, rows_of
from ..domain.sealing import SealedEvent, StoredRecord


class OwnerGuard(NamedTuple):
    """Whoever commits: the incarnation and epoch that must still own the session. SPEC section 15."""

    session_id: SessionId
    incarnation_id: IncarnationId
    epoch: int


class Commit(NamedTuple):
    """Sealed events of one or more streams of one session: all or nothing, with the rows of the views that they make.

    What a view shows is a pure function of an event, so whoever keeps the events makes it: a store may keep it in
    another form, or read it from the events.
    """

    guard: OwnerGuard
    events: tuple[SealedEvent, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the views that its events make, in their order."""
        return tuple(chain.from_iterable(map(rows_of, self.events)))


class Stored(NamedTuple):
    """The commit is durable."""


class VersionConflict(NamedTuple):
    """Another commit took the place of the first event in `stream`, or of the event that it was sealed after; load
    again and decide again.
    """

    stream: str


class Fenced(NamedTuple):
    """The guard no longer owns the session; nothing was written."""

    session_id: SessionId
    epoch: int


class DuplicateId(NamedTuple):
    """An id that must be unique is taken: kind is `event`, `operation`, `claim` or `run`."""

    kind: str
    id: str


class ConstraintBroken(NamedTuple):
    """A rule of the store itself refused the commit, such as an event after the terminal one."""

    detail: str


class Damaged(NamedTuple):
    """What this commit touches cannot be read or written; its neighbours can."""

    detail: str


CommitAnswer: TypeAlias = Stored | VersionConflict | Fenced | DuplicateId | ConstraintBroken | Damaged


class Location(NamedTuple):
    """Where an event id stands."""

    stream: str
    version: int


class Standing(NamedTuple):
    """What the store can vouch for about a run. SPEC section 6.

    `run_generation` is 0 for an imported run, and None for a run that was never admitted. `behind_anchor` also stands
    for an anchor that is missing or does not match; `copied` for a store that is not where it was made or adopted;
    `gap` where the run has no end and an event is missing behind its newest one, which may have been its own.
    """

    run_generation: int | None
    store_generation: int
    behind_anchor: bool
    copied: bool = False
    gap: bool = False

    @property
    def foreign(self) -> bool:
        """True where absence of a fact proves nothing."""
        return self.behind_anchor or self.copied or self.gap or self.run_generation != self.store_generation


class EventReader(Protocol):
    """One consistent view of the streams; a later commit does not show in it.

    Raises (all methods): StoreUnavailable when it could not look; never an empty answer instead. StoreDamaged when
    pages cannot be read.
    """

    @abstractmethod
    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        """Rows of a stream with versions above `after`, in order, at most `limit` (1 to 10,000).

        Fewer than `limit` come only where the stream ends: readers take a page that is not full for the last one.
        """

    @abstractmethod
    def last(self, stream: str) -> StoredRecord | None:
        """The newest row of a stream, or None when the stream has none."""

    @abstractmethod
    def locate(self, event_id: EventId) -> Location | None:
        """Where an event id was used, or None when it never was."""

    @abstractmethod
    def standing(self, run_id: RunId) -> Standing:
        """What the store vouches for about a run."""


class EventStore(Protocol):
    """Keeps sealed commits.

    Order: answers stand in the order of the commits; a commit refused alone leaves its neighbours untouched. A commit
    that does not fit is answered by the first of these that holds: an event id is used already, the guard is fenced, a
    version is taken, another unique id is used already, a constraint is broken. One without events keeps nothing: it is
    stored, unless its guard is fenced.
    Atomicity: a commit's events, unique ids and rows become durable together or not at all; all commits of one call
    share one transaction, so none is durable before the call returns.
    """

    @abstractmethod
    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        """Keep each commit that fits; answer for each.

        Raises:
            StoreUnavailable: nothing can be said of any commit of the call: it may or may not be durable (COMMIT
                failed, or the anchor could not be raised).
            StoreFull: there was no room; nothing was written.
            StoreNotAdopted: the store is behind its anchor or copied; nothing was written.
            StoreDamaged: the store cannot be trusted; nothing was written.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[EventReader]:
        """Open a consistent view; closed when the block ends. Reading changes no byte of the store."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; idempotent."""
