"""The contract of `StoreKeeping`."""

from __future__ import annotations

import pytest

from ..event_store import EventStore, OwnerGuard, Standing
from ..session_owners import Ownership, SessionOwners
from ..store_keeping import StoreKeeping, Trust
from .recorded_runs import NOON, RecordedSession


class StoreKeepingContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def keeping(self) -> StoreKeeping:
        """An empty store as a whole."""
        pytest.fail("override the fixture `keeping`")

    @pytest.fixture
    def event_store(self) -> EventStore:
        """Its streams."""
        pytest.fail("override the fixture `event_store`")

    @pytest.fixture
    def owners(self) -> SessionOwners:
        """Its owners."""
        pytest.fail("override the fixture `owners`")

    @pytest.fixture
    def sessions(self, event_store: EventStore, owners: SessionOwners) -> list[RecordedSession]:
        """Five sessions with an open run each."""
        sessions = [RecordedSession(name) for name in "edcba"]
        for one in sessions:
            one.own(owners)
            one.keep(event_store, *one.opened())
        return sessions

    def test_an_empty_store_can_be_trusted(self, keeping: StoreKeeping) -> None:
        condition = keeping.condition()
        assert (condition.trust, condition.generation) == (Trust.OK, 1)
        assert (condition.events, condition.anchored_events) == (0, 0)

    def test_the_condition_counts_events(self, keeping: StoreKeeping, sessions: list[RecordedSession]) -> None:
        condition = keeping.condition()
        assert condition.trust is Trust.OK
        assert (condition.events, condition.anchored_events) == (20, 20)

    def test_owners_are_no_events(self, keeping: StoreKeeping, owners: SessionOwners) -> None:
        RecordedSession().own(owners)
        assert (keeping.condition().events, keeping.condition().anchored_events) == (0, 0)

    def test_commits_that_are_all_refused_count_nothing(
        self, keeping: StoreKeeping, event_store: EventStore, sessions: list[RecordedSession]
    ) -> None:
        before = keeping.condition()
        fenced = OwnerGuard(sessions[0].session_id, sessions[0].guard.incarnation_id, 7)
        event_store.append([sessions[0].commit(sessions[0].text("no"), guard=fenced)])
        assert keeping.condition() == before

    def test_streams_are_listed_page_by_page(self, keeping: StoreKeeping, sessions: list[RecordedSession]) -> None:
        names = sorted(name for one in sessions for name in (f"session:{one.session_id}", f"run:{one.run_id()}"))
        assert list(keeping.streams()) == names
        found: list[str] = []
        while page := keeping.streams(after=found[-1] if found else "", limit=3):
            assert len(page) <= 3
            found += page
        assert found == names

    def test_an_empty_store_has_no_streams(self, keeping: StoreKeeping) -> None:
        assert list(keeping.streams()) == []

    def test_owned_sessions_are_listed_page_by_page(
        self, keeping: StoreKeeping, owners: SessionOwners, sessions: list[RecordedSession]
    ) -> None:
        owners.release(*sessions[0].guard)
        owned = sorted(Ownership(*one.guard) for one in sessions[1:])
        assert list(keeping.owned_sessions()) == owned
        assert list(keeping.owned_sessions(after=owned[0].session_id, limit=2)) == owned[1:3]
        assert list(keeping.owned_sessions(after=owned[-1].session_id)) == []

    @pytest.mark.parametrize("limit", [0, 10_001])
    def test_pages_have_bounds(self, keeping: StoreKeeping, limit: int) -> None:
        with pytest.raises(ValueError, match="limit"):
            keeping.streams(limit=limit)
        with pytest.raises(ValueError, match="limit"):
            keeping.owned_sessions(limit=limit)

    def test_adopting_makes_what_is_there_foreign_and_what_follows_not(
        self, keeping: StoreKeeping, event_store: EventStore, sessions: list[RecordedSession]
    ) -> None:
        condition = keeping.adopt(by="somebody", note="restored by hand", at=NOON)
        assert (condition.trust, condition.generation) == (Trust.OK, 2)
        one = sessions[0]
        one.keep(event_store, one.ended(), *one.opened("b"))
        with event_store.snapshot() as reader:
            assert reader.standing(one.run_id("a")) == Standing(1, 2, behind_anchor=False)
            assert reader.standing(one.run_id("a")).foreign
            assert not reader.standing(one.run_id("b")).foreign
