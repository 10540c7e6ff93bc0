"""Reads a whole store and says what of it cannot be what was written. SPEC sections 6, 7 and 23 (F12).

It goes stream by stream and page by page, goes on after damage, and names the first damaged event of each stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain

from ..domain.errors import StoreDamaged
from ..domain.identifiers import SessionId
from ..domain.reasons import WriteRefusal
from ..ports.event_store import EventReader, EventStore
from ..ports.session_owners import SessionOwners
from ..ports.store_keeping import Projections, StoreCondition, StoreKeeping
from .paging import every
from .verify_stream import OwnedRun, StreamDamage, verify_stream

FINDINGS_MAX = 1_000
"""How many findings of a kind are kept; all are counted."""
SESSIONS_SEEN_MAX = 100_000
"""Of how many sessions it is remembered what was seen of their owner. One that was forgotten is looked at again for its
next run, and what is wrong with it is counted again.
"""
_NO_NAME = ""
_NAMED = math.inf


class OwnerFault(StrEnum):
    """What is wrong with the control row of a session that is or was owned."""

    NEVER_REGISTERED = "never_registered"
    """The facts of the owning process are not recorded, so nobody can ever see whether it lives."""
    MISSING = "missing"
    """A run names its owner, and the session has no row: nobody sees that it was left open, and epochs begin anew."""
    BEHIND_ITS_EVENTS = "behind_its_events"
    """A run names an owner of a later epoch than the row's, which then fences nobody."""


@dataclass(frozen=True, slots=True)
class OwnerFinding:
    """One session whose row does not add up."""

    session_id: SessionId
    fault: OwnerFault


@dataclass(frozen=True, slots=True)
class ProjectionFinding:
    """A row of a view that is not what the events make: `missing`, `extra` or `different`; a whole view, without key,
    is `unreadable`: it is gone, cannot be read, or somebody has made another one of it.
    """

    table: str
    key: tuple[str | int | None, ...]
    kind: str


@dataclass(slots=True)
class Verification:
    """What was read and what was found.

    Attributes:
        damages: the first damaged event of each damaged stream; at most `FINDINGS_MAX`, `damaged_streams` counts all.
        owners: likewise, one of each session, counted by `owner_faults`.
        projections: likewise, counted by `projection_differences`; these are rebuilt, never believed, and lose nothing.
        faults: pages, indexes and control rows that are not what they should be, as sentences.
        unread: why the list of streams itself could not be read to its end, None when it was.
    """

    condition: StoreCondition
    streams: int = 0
    events: int = 0
    damaged_streams: int = 0
    damages: list[StreamDamage] = field(default_factory=list)
    owner_faults: int = 0
    owners: list[OwnerFinding] = field(default_factory=list)
    projection_differences: int = 0
    projections: list[ProjectionFinding] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unread: str | None = None

    @property
    def tail_is_vouched_for(self) -> bool:
        """False when the store is behind its anchor, has none, or does not match it."""
        return not self.condition.trust.end_may_be_lost

    @property
    def sound(self) -> bool:
        """True when nothing that was written is missing or changed, as far as this can be seen."""
        return not (
            self.damaged_streams or self.projection_differences or self.owner_faults or self.faults or self.unread
        ) and (self.tail_is_vouched_for)


class VerifyStore:
    """Verifies one store.

    Args:
        store: the events.
        keeping: lists streams, and compares the store with its anchor.
        owners: the control rows.
        projections: the views, compared with the events.
    """

    def __init__(
        self, store: EventStore, keeping: StoreKeeping, owners: SessionOwners, projections: Projections
    ) -> None:
        self._store = store
        self._keeping = keeping
        self._owners = owners
        self._projections = projections

    def __call__(
        self,
        progress: Callable[[int, int], None] = lambda streams, events: None,
        part_begins: Callable[[str], None] = lambda part: None,
    ) -> Verification:
        """Read everything once.

        Args:
            progress: told after each stream how many streams and events were read.
            part_begins: told what is looked at next, as a word or two: streams first.

        Raises:
            StoreUnavailable: it could not be looked at.
            StoreDamaged: not even its condition can be read.
        """
        found = Verification(self._keeping.condition())
        parts: dict[str, Callable[[Verification], None]] = {
            "streams": partial(self._all_streams, progress=progress),
            "owners": self._owned,
            "pages and indexes": self._faults,
            "views": self._views,
        }
        for name, part in parts.items():
            part_begins(name)
            try:
                part(found)
            except StoreDamaged as error:
                found.unread = found.unread or error.detail
        return found

    def _faults(self, found: Verification) -> None:
        found.faults += self._keeping.faults()

    def _all_streams(self, found: Verification, progress: Callable[[int, int], None]) -> None:
        named = every(lambda after: self._keeping.streams(after=after), _NO_NAME, lambda stream: stream)
        seen = _OwnersSeen()
        for stream in chain(self._nameless(), named):
            self._stream(stream, found, seen)
            progress(found.streams, found.events)

    def _nameless(self) -> Iterator[str]:
        """The stream below all names, which nobody can write but by hand."""
        with self._store.snapshot() as reader:
            rows = reader.read(_NO_NAME, limit=1)
        if rows:
            yield _NO_NAME

    def _stream(self, stream: str, found: Verification, seen: _OwnersSeen) -> None:
        found.streams += 1
        try:
            with self._store.snapshot() as reader:
                read = verify_stream(reader, stream)
                if read.owned is not None:
                    self._owner_of(read.owned, reader, found, seen)
            found.events += read.events
            damage = read.damage
        except StoreDamaged as error:
            damage = StreamDamage(stream, None, None, WriteRefusal.STORE_DAMAGED, error.detail)
        if damage is not None:
            found.damaged_streams += 1
            if len(found.damages) < FINDINGS_MAX:
                found.damages.append(damage)

    def _owner_of(self, run: OwnedRun, reader: EventReader, found: Verification, seen: _OwnersSeen) -> None:
        """Compare a run's owner with the row, which is at least as new: it is looked at after the run.

        A look for each session, and two for a run that was imported: what a run costs does not grow with the store.
        """
        if seen.vouches_for(run):
            return
        row = self._owners.owner(run.session_id)
        if row is not None and row.epoch >= run.epoch:
            seen.remember(run.session_id, row.epoch)
            return
        if reader.standing(run.run_id).run_generation == 0:
            return  # imported: its owners are those of another store
        fault = OwnerFault.MISSING if row is None else OwnerFault.BEHIND_ITS_EVENTS
        seen.remember(run.session_id, _NAMED)
        _add_owner(found, OwnerFinding(run.session_id, fault))

    def _owned(self, found: Verification) -> None:
        for row in every(lambda after: self._keeping.owned_sessions(after=after), "", lambda row: row.session_id):
            if row.incarnation_id is not None and self._owners.incarnation(row.incarnation_id) is None:
                _add_owner(found, OwnerFinding(row.session_id, OwnerFault.NEVER_REGISTERED))

    def _views(self, found: Verification) -> None:
        for difference in self._projections.differences():
            found.projection_differences += 1
            if len(found.projections) < FINDINGS_MAX:
                kind = "different"
                if not difference.key:
                    kind = "unreadable"
                elif difference.found is None:
                    kind = "missing"
                elif difference.expected is None:
                    kind = "extra"
                found.projections.append(ProjectionFinding(difference.table, difference.key, kind))


class _OwnersSeen:
    """The newest epoch that was seen of each of the last sessions; one of which a fault is named needs no look more."""

    def __init__(self) -> None:
        self._epochs: dict[SessionId, float] = {}

    def vouches_for(self, run: OwnedRun) -> bool:
        return self._epochs.get(run.session_id, -1) >= run.epoch

    def remember(self, session_id: SessionId, epoch: float) -> None:
        self._epochs.pop(session_id, None)
        self._epochs[session_id] = epoch
        if len(self._epochs) > SESSIONS_SEEN_MAX:
            del self._epochs[next(iter(self._epochs))]


def _add_owner(found: Verification, finding: OwnerFinding) -> None:
    found.owner_faults += 1
    if len(found.owners) < FINDINGS_MAX:
        found.owners.append(finding)
