"""The contract of `SessionForgetting`: the content is gone, and everything else is as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ...domain.forgetting import FORGOTTEN_TOPIC, kept_digest, tombstone_of
from ...domain.identifiers import RunId, SessionId, run_stream, session_stream
from ...domain.sealing import digest_of
from ..event_store import EventStore, Stored
from ..session_forgetting import SessionForgetting
from ..session_owners import SessionOwners
from ..store_keeping import Projections, StoreKeeping
from ..views import Views
from .recorded_runs import RecordedSession

BY = "Ada"
AT = "2026-03-02T00:00:00.000000Z"


class SessionForgettingContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def forgetting(self) -> SessionForgetting:
        """The operation on an empty store."""
        pytest.fail("override the fixture `forgetting`")

    @pytest.fixture
    def event_store(self) -> EventStore:
        """Its streams."""
        pytest.fail("override the fixture `event_store`")

    @pytest.fixture
    def owners(self) -> SessionOwners:
        """Its owners."""
        pytest.fail("override the fixture `owners`")

    @pytest.fixture
    def keeping(self) -> StoreKeeping:
        """The store as a whole."""
        pytest.fail("override the fixture `keeping`")

    @pytest.fixture
    def projections(self) -> Projections:
        """Its views, to be compared."""
        pytest.fail("override the fixture `projections`")

    @pytest.fixture
    def views(self) -> Views:
        """Its views."""
        pytest.fail("override the fixture `views`")

    @pytest.fixture
    def sessions(self, event_store: EventStore, owners: SessionOwners) -> list[RecordedSession]:
        """Two sessions with a run each; the first is the one to forget."""
        sessions = [RecordedSession(name) for name in ("one", "two")]
        for one in sessions:
            one.own(owners)
            one.keep(event_store, *one.opened())
            one.keep(event_store, one.ended())
        return sessions

    @pytest.fixture
    def forget(self, forgetting: SessionForgetting, sessions: list[RecordedSession]) -> Callable[[], object]:
        """Forget the first session."""
        return lambda: forgetting.forget([sessions[0].session_id], by=BY, at=AT)

    def test_every_event_gives_way_to_a_tombstone_that_says_who_and_keeps_its_digest(
        self, forgetting: SessionForgetting, event_store: EventStore, sessions: list[RecordedSession]
    ) -> None:
        streams = [session_stream(sessions[0].session_id), run_stream(RunId("run-one-a"))]
        with event_store.snapshot() as reader:
            before = {stream: reader.read(stream) for stream in streams}
        done = forgetting.forget([sessions[0].session_id], by=BY, at=AT)
        assert (done.events, done.runs) == (sum(map(len, before.values())), 1)
        with event_store.snapshot() as reader:
            for stream in streams:
                rows = reader.read(stream)
                assert [row.version for row in rows] == [row.version for row in before[stream]]
                for row, old in zip(rows, before[stream], strict=True):
                    left = tombstone_of(row.state)
                    assert row.topic == FORGOTTEN_TOPIC
                    assert left is not None
                    assert (left.by, left.at, left.was) == (BY, AT, old.topic)
                    assert kept_digest(row.state) == digest_of(old.state)

    def test_other_sessions_keep_every_byte(
        self, event_store: EventStore, forget: Callable[[], object], sessions: list[RecordedSession]
    ) -> None:
        streams = [session_stream(sessions[1].session_id), run_stream(RunId("run-two-a"))]
        with event_store.snapshot() as reader:
            before = [reader.read(stream) for stream in streams]
        forget()
        with event_store.snapshot() as reader:
            assert [reader.read(stream) for stream in streams] == before

    def test_forgetting_twice_changes_nothing_more(
        self, forgetting: SessionForgetting, event_store: EventStore, sessions: list[RecordedSession]
    ) -> None:
        forgetting.forget([sessions[0].session_id], by=BY, at=AT)
        with event_store.snapshot() as reader:
            before = reader.read(session_stream(sessions[0].session_id))
        again = forgetting.forget([sessions[0].session_id], by="Bob", at=AT)
        assert (again.events, again.runs) == (0, 1)
        with event_store.snapshot() as reader:
            assert reader.read(session_stream(sessions[0].session_id)) == before

    def test_a_session_that_never_was_is_forgotten_without_a_trace(
        self, forgetting: SessionForgetting, keeping: StoreKeeping, sessions: list[RecordedSession]
    ) -> None:
        before = keeping.streams()
        assert forgetting.forget([SessionId("nobody")], by=BY, at=AT).events == 0
        assert keeping.streams() == before

    def test_counts_trust_and_every_check_of_the_store_are_as_they_were(
        self,
        keeping: StoreKeeping,
        projections: Projections,
        forget: Callable[[], object],
    ) -> None:
        before = keeping.condition()
        forget()
        assert keeping.condition() == before
        assert list(keeping.faults()) == []
        assert list(projections.differences()) == []

    def test_the_views_know_it_no_more(
        self, views: Views, forget: Callable[[], object], sessions: list[RecordedSession]
    ) -> None:
        forget()
        assert views.session(sessions[0].session_id) is None
        assert views.run(RunId("run-one-a")) is None
        assert [row.session_id for row in views.sessions()] == [sessions[1].session_id]

    def test_its_ids_stay_used_and_the_store_takes_other_events(
        self,
        event_store: EventStore,
        owners: SessionOwners,
        forget: Callable[[], object],
        sessions: list[RecordedSession],
    ) -> None:
        forget()
        again = RecordedSession("one")
        again.own(owners)
        answer = event_store.append([again.commit(*again.opened())])[0]
        assert not isinstance(answer, Stored)
        third = RecordedSession("three")
        third.own(owners)
        third.keep(event_store, *third.opened())
