"""What can be made to go wrong in the store in memory, for the tests of whatever stands on it."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.tables import Failure
from safepoint.domain.errors import (
    StoreBehindAnchor,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreNotAdopted,
    StoreUnavailable,
)
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.event_store import Stored
from safepoint.ports.store_keeping import Trust


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def recorded(store: MemoryStore) -> RecordedSession:
    recorded = RecordedSession()
    recorded.own(store.owners)
    recorded.keep(store.events, *recorded.opened())
    return recorded


@pytest.mark.parametrize(
    ("failure", "error", "kept"),
    [
        (Failure.UNAVAILABLE, StoreUnavailable, False),
        (Failure.COMMIT_LOST, StoreUnavailable, False),
        (Failure.COMMIT_STORED, StoreUnavailable, True),
        (Failure.ANCHOR_NOT_RAISED, StoreUnavailable, True),
        (Failure.FULL, StoreFull, False),
        (Failure.DAMAGED, StoreDamaged, False),
    ],
)
def test_a_failure_happens_once(
    store: MemoryStore, recorded: RecordedSession, failure: Failure, error: type[StoreError], kept: bool
) -> None:
    store.fail_next(failure)
    commit = recorded.commit(recorded.text("once"))
    with pytest.raises(error):
        store.events.append([commit])
    assert store.condition().events == (5 if kept else 4)
    if not kept:
        assert store.events.append([commit]) == [Stored()]


def test_reading_can_fail(store: MemoryStore, recorded: RecordedSession) -> None:
    store.fail_next(Failure.UNREADABLE, times=2)
    with pytest.raises(StoreUnavailable), store.events.snapshot():
        pass
    with pytest.raises(StoreUnavailable):
        store.views.sessions()
    assert len(store.views.sessions()) == 1


def test_a_failure_of_reading_does_not_hit_a_writer(store: MemoryStore, recorded: RecordedSession) -> None:
    store.fail_next(Failure.UNREADABLE)
    recorded.keep(store.events, recorded.text("written"))


@pytest.mark.parametrize("trust", [trust for trust in Trust if trust is not Trust.OK])
def test_a_distrusted_store_is_read_and_not_written(
    store: MemoryStore, recorded: RecordedSession, trust: Trust
) -> None:
    store.distrust(trust)
    with pytest.raises(StoreNotAdopted if trust is Trust.COPIED else StoreBehindAnchor):
        store.events.append([recorded.fork().commit(recorded.text("no"))])
    with store.events.snapshot() as view:
        standing = view.standing(recorded.run_id())
    assert standing.foreign
    copied = trust in {Trust.COPIED, Trust.COPIED_BEHIND_ANCHOR}
    assert (standing.copied, standing.behind_anchor) == (copied, trust is not Trust.COPIED)
    assert store.adopt(by="somebody", note="known", at=NOON).trust is Trust.OK
    with store.events.snapshot() as view:
        assert view.standing(recorded.run_id()).foreign
