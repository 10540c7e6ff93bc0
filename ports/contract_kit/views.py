"""The contracts of `Views` and `Projections`: they are views of the same events."""

from __future__ import annotations

import pytest

from ...domain.events.run import RunOpened, RunStatus
from ...domain.events.session import WatchStatus
from ...domain.events.tool import Effect
from ...domain.identifiers import OperationId, RequestId, RunId, SessionId
from ..event_store import EventStore
from ..session_owners import SessionOwners
from ..store_keeping import Projections
from ..views import PAGE_MAX, Kinship, Views
from .recorded_runs import Parent, RecordedSession


class ViewsContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the ports."""

    @pytest.fixture
    def views(self) -> Views:
        """The views of an empty store."""
        pytest.fail("override the fixture `views`")

    @pytest.fixture
    def projections(self) -> Projections:
        """The projections of the same store."""
        pytest.fail("override the fixture `projections`")

    @pytest.fixture
    def event_store(self) -> EventStore:
        """Its streams."""
        pytest.fail("override the fixture `event_store`")

    @pytest.fixture
    def owners(self) -> SessionOwners:
        """Its owners."""
        pytest.fail("override the fixture `owners`")

    @pytest.fixture
    def recorded(self, event_store: EventStore, owners: SessionOwners) -> RecordedSession:
        """A session with one open run."""
        recorded = RecordedSession()
        recorded.own(owners)
        recorded.keep(event_store, *recorded.opened())
        return recorded

    @pytest.fixture
    def five(self, event_store: EventStore, owners: SessionOwners) -> list[RecordedSession]:
        """Five sessions, the newest last; two of them at the same instant."""
        sessions = [RecordedSession(name) for name in "caebd"]
        for minute, one in zip((0, 1, 2, 2, 3), sessions, strict=True):
            one.own(owners)
            one.keep(event_store, *one.opened(at=f"2026-03-01T12:0{minute}:00.000000Z"))
        return sessions

    def test_an_empty_store_shows_nothing(self, views: Views) -> None:
        assert list(views.sessions()) == []
        assert list(views.unsettled()) == []
        assert list(views.open_permissions()) == []
        assert views.session(SessionId("s")) is None
        assert views.run(RunId("r")) is None
        assert views.operation(OperationId("o")) is None
        assert views.continuation_of("d") is None
        assert views.continuation_to(RunId("r")) is None

    def test_sessions_are_listed_newest_first_page_by_page(self, views: Views, five: list[RecordedSession]) -> None:
        newest_first = ["session-d", "session-e", "session-b", "session-a", "session-c"]
        assert [row.session_id for row in views.sessions()] == newest_first
        found = list(views.sessions(limit=2))
        while page := views.sessions(after=found[-1].key, limit=2):
            found += page
        assert [row.session_id for row in found] == newest_first

    def test_a_session_shows_its_head(self, views: Views, event_store: EventStore, recorded: RecordedSession) -> None:
        row = views.session(recorded.session_id)
        assert row is not None
        assert (row.head_run_id, row.head_kind, row.head_status, row.unsettled) == ("run-one-a", "turn", None, 0)
        recorded.keep(event_store, recorded.ended())
        row = views.session(recorded.session_id)
        assert row is not None
        assert (row.head_status, row.head_failure_class) == ("failed", "provider_failed")
        assert list(views.sessions()) == [row]
        recorded.keep(event_store, *recorded.opened("b"))
        row = views.session(recorded.session_id)
        assert row is not None
        assert (row.head_run_id, row.head_status) == ("run-one-b", None)

    def test_runs_stand_in_order_of_admission(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        recorded.keep(event_store, recorded.ended())
        for name in ("z", "b", "m"):
            recorded.keep(event_store, *recorded.opened(name), recorded.ended(name, RunStatus.COMPLETED))
        rows = views.runs(recorded.session_id)
        assert [row.run_id for row in rows] == ["run-one-a", "run-one-z", "run-one-b", "run-one-m"]
        assert [row.status for row in rows] == ["failed", "completed", "completed", "completed"]
        second = views.runs(recorded.session_id, after=rows[0].admitted_sequence or 0, limit=2)
        assert list(second) == list(rows[1:3])
        assert list(views.runs(SessionId("unknown"))) == []
        assert views.run(RunId("run-one-b")) == rows[2]

    def test_sessions_of_child_runs_are_found_by_their_parents(
        self, views: Views, event_store: EventStore, owners: SessionOwners, recorded: RecordedSession
    ) -> None:
        parent = Parent(recorded.session_id, recorded.run_id(), recorded.operation_id("call"))
        children = [RecordedSession(name) for name in ("x", "w")]
        for child in children:
            child.own(owners)
            child.keep(event_store, *child.opened(parent=parent))
        assert list(views.children(recorded.session_id)) == ["session-w", "session-x"]
        assert list(views.children(recorded.session_id, limit=1)) == ["session-w"]
        assert list(views.children(recorded.session_id, after=SessionId("session-w"))) == ["session-x"]
        assert list(views.children(SessionId("session-x"))) == []
        asked = [SessionId(name) for name in ("session-x", "unknown", recorded.session_id)]
        assert sorted(views.kinships(asked)) == [
            Kinship(recorded.session_id, unstarted=False, parent_session_id=None),
            Kinship(SessionId("session-x"), unstarted=False, parent_session_id=recorded.session_id),
        ]
        assert list(views.kinships([])) == []

    def test_a_session_whose_claim_was_never_started_is_seen(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        recorded.keep(event_store, recorded.ended())
        recorded.keep(event_store, recorded.claimed(), recorded.admitted_target())
        (kinship,) = views.kinships([recorded.session_id])
        assert kinship.unstarted

    def test_open_runs_are_those_without_a_terminal_event(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        assert [row.run_id for row in views.open_runs(recorded.session_id)] == [recorded.run_id()]
        recorded.keep(event_store, recorded.ended())
        assert list(views.open_runs(recorded.session_id)) == []

    def test_the_folders_of_a_workspace_are_those_that_its_runs_began_in(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        for name, folder, identity in (("x", "/b", "w:1"), ("y", "/a", "w:1"), ("z", "/b", "w:1"), ("o", "/c", "w:2")):
            began = {"cwd": folder, "workspace_identity": identity}
            opened = recorded.opened(name)
            recorded.keep(
                event_store, *(one.model_copy(update=began) if isinstance(one, RunOpened) else one for one in opened)
            )
        assert list(views.folders_of("w:1")) == ["/a", "/b"]
        assert list(views.folders_of("w:1", limit=1)) == ["/a"]
        assert list(views.folders_of("w:2")) == ["/c"]
        assert list(views.folders_of("w:3")) == []

    def test_operations_stand_in_order_of_dispatch(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        for call in ("z", "a", "m"):
            recorded.keep(event_store, recorded.called(call), recorded.dispatched(call))
        recorded.keep(event_store, recorded.responded("a"))
        rows = views.operations(recorded.run_id())
        assert [row.call_id for row in rows] == ["z", "a", "m"]
        assert [row.effect for row in rows] == [None, "done", None]
        assert [row.mode for row in rows] == ["reconcile"] * 3
        after = rows[0].dispatched_sequence
        assert after is not None
        assert list(views.operations(recorded.run_id(), after=after, limit=1)) == [rows[1]]
        assert views.operation(recorded.operation_id("a")) == rows[1]
        assert list(views.operations(RunId("unknown"))) == []

    def test_what_is_unsettled_is_listed_until_it_is_settled(
        self, views: Views, event_store: EventStore, owners: SessionOwners, recorded: RecordedSession
    ) -> None:
        other = RecordedSession("two")
        other.own(owners)
        other.keep(event_store, *other.opened(), other.called("x"), other.dispatched("x"))
        for call in ("done", "open", "unknown", "cleared"):
            recorded.keep(event_store, recorded.called(call), recorded.dispatched(call))
        recorded.keep(event_store, recorded.responded("done"))
        recorded.keep(event_store, recorded.responded("unknown", effect=Effect.UNKNOWN))
        recorded.keep(event_store, recorded.cleared("cleared"))
        rows = views.unsettled()
        assert [(row.session_id, row.call_id) for row in rows] == [
            ("session-one", "open"),
            ("session-one", "unknown"),
            ("session-two", "x"),
        ]
        assert list(views.unsettled(recorded.session_id)) == list(rows[:2])
        assert list(views.unsettled(after=rows[0].key, limit=1)) == [rows[1]]
        assert list(views.unsettled(recorded.session_id, after=rows[1].key)) == []
        assert [(row.session_id, row.unsettled) for row in views.sessions()] == [("session-two", 1), ("session-one", 2)]

    def test_what_an_ended_run_left_in_doubt_is_listed_as_long_as_it_is_watched(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        calls = ("dangling", "parked", "recovered", "cleared")
        for call in calls:
            recorded.keep(event_store, recorded.called(call), recorded.dispatched(call))
        statuses = (WatchStatus.INDETERMINATE, WatchStatus.PARKED, WatchStatus.RECOVERED, WatchStatus.UNKNOWN)
        watched = [recorded.watched(call, status) for call, status in zip(calls, statuses, strict=True)]
        recorded.keep(event_store, recorded.ended(), *watched)
        recorded.keep(event_store, recorded.cleared("cleared"))
        recorded.keep(event_store, *recorded.opened("b"), recorded.ended("b", RunStatus.COMPLETED))
        assert [row.call_id for row in views.unsettled()] == ["dangling", "parked"]
        (row,) = views.sessions()
        assert row.unsettled == 2
        recorded.keep(event_store, recorded.watched("cleared", WatchStatus.INDETERMINATE))
        assert [row.call_id for row in views.unsettled(recorded.session_id)] == ["cleared", "dangling", "parked"]

    @pytest.mark.parametrize("limit", [1, 2, 3, PAGE_MAX])
    def test_pages_of_what_is_unsettled_leave_nothing_out_and_repeat_nothing(
        self, views: Views, event_store: EventStore, owners: SessionOwners, limit: int
    ) -> None:
        """What is watched and what a head run left unwatched stand in one order, whichever was dispatched first."""
        sessions = [RecordedSession(name) for name in ("y", "z", "x")]
        for one in sessions:
            one.own(owners)
            one.keep(event_store, *one.opened())
            for call in ("d", "a", "c", "b"):
                one.keep(event_store, one.called(call), one.dispatched(call))
            one.keep(event_store, one.ended(), *(one.watched(call, WatchStatus.INDETERMINATE) for call in "ca"))
        for only in (None, sessions[1].session_id):
            found = list(views.unsettled(only, limit=limit))
            while page := views.unsettled(only, after=found[-1].key, limit=limit):
                assert len(page) <= limit
                found += page
            expected = [(f"session-{name}", call) for name in ("x", "y", "z") for call in ("a", "b", "c", "d")]
            assert [(row.session_id, row.call_id) for row in found] == [
                one for one in expected if only in (None, one[0])
            ]

    @pytest.mark.parametrize(
        ("status", "expected"), [(None, 1), (RunStatus.FAILED, 1), (RunStatus.CANCELLED, 1), (RunStatus.COMPLETED, 0)]
    )
    def test_what_a_head_run_left_unwatched_is_listed_while_it_may_be_continued(
        self, views: Views, event_store: EventStore, recorded: RecordedSession, status: RunStatus | None, expected: int
    ) -> None:
        """Such as a read that has no outcome: nobody watches it, and it stands in the way all the same."""
        recorded.keep(event_store, recorded.called("x"), recorded.dispatched("x"))
        if status is not None:
            recorded.keep(event_store, recorded.ended(status=status))
        assert len(views.unsettled()) == expected
        assert [row.unsettled for row in views.sessions()] == [expected]
        if status is not None:
            recorded.keep(event_store, *recorded.opened("b"))
            assert list(views.unsettled()) == []

    def test_a_question_is_listed_until_it_is_decided(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        recorded.keep(event_store, recorded.asked("x"), recorded.asked("y"))
        asked = views.open_permissions()
        assert [row.call_id for row in asked] == ["x", "y"]
        assert [views.permission(row.request_id) for row in asked] == list(asked)
        assert [row.call_id for row in views.open_permissions(recorded.session_id, limit=1)] == ["x"]
        assert list(views.open_permissions(SessionId("unknown"))) == []
        recorded.keep(event_store, recorded.decided("x"))
        assert [row.call_id for row in views.open_permissions(recorded.session_id)] == ["y"]
        decided = views.permission(asked[0].request_id)
        assert decided is not None
        assert (decided.call_id, decided.decided_event_id is None) == ("x", False)
        assert views.permission(RequestId("unknown")) is None

    def test_a_claim_is_found_by_its_boundary_and_by_its_target(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        recorded.keep(event_store, recorded.ended())
        claim = recorded.claimed()
        recorded.keep(event_store, claim)
        row = views.continuation_of(claim.boundary_digest)
        assert row is not None
        assert (row.source_run_id, row.target_run_id, row.trigger) == (claim.run_id, claim.target.run_id, "person")
        assert row.started_event_id is None
        assert views.continuation_to(claim.target.run_id) == row
        assert list(views.continuations(recorded.session_id)) == [row]
        assert views.continuation_of("another") is None

    @pytest.mark.parametrize("limit", [0, PAGE_MAX + 1])
    def test_pages_have_bounds(self, views: Views, limit: int) -> None:
        with pytest.raises(ValueError, match="limit"):
            views.sessions(limit=limit)
        with pytest.raises(ValueError, match="limit"):
            views.unsettled(limit=limit)

    def test_a_commit_that_is_refused_shows_nowhere(
        self, views: Views, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        loser = recorded.fork()
        recorded.keep(event_store, recorded.text("first"))
        event_store.append([loser.commit(loser.dispatched("lost"))])
        assert list(views.operations(recorded.run_id())) == []

    def test_what_was_written_online_is_what_the_events_make(
        self, projections: Projections, event_store: EventStore, recorded: RecordedSession, five: list[RecordedSession]
    ) -> None:
        assert list(projections.differences()) == []

    def test_the_facts_of_a_recovery_are_shown(
        self, views: Views, projections: Projections, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        recorded.keep(event_store, recorded.called("x"), recorded.dispatched("x"), *recorded.recovery_of("x"))
        row = views.operation(recorded.operation_id("x"))
        assert row is not None
        assert (row.observation, row.decision, row.reason) == ("diverged", "parked", "reconcile_diverged")
        assert row.attestation == "completed"
        assert list(projections.differences()) == []

    def test_rebuilding_gives_the_same_views(
        self, views: Views, projections: Projections, event_store: EventStore, five: list[RecordedSession]
    ) -> None:
        one = five[0]
        one.keep(event_store, one.called("x"), one.dispatched("x"), one.asked("y"))
        one.keep(event_store, one.responded("x", effect=Effect.UNKNOWN))
        one.keep(event_store, one.ended())
        one.keep(event_store, one.claimed())

        def seen() -> list[object]:
            return [
                views.sessions(),
                views.runs(one.session_id),
                views.operations(one.run_id()),
                views.unsettled(),
                views.open_permissions(),
                views.continuations(one.session_id),
            ]

        before = seen()
        told: list[tuple[int, int]] = []
        rebuilt = projections.rebuild(lambda done, total: told.append((done, total)))
        assert seen() == before
        assert (rebuilt.events, rebuilt.unreadable) == (26, 0)
        assert told[-1] == (26, 26)
        assert list(projections.differences()) == []

    def test_an_empty_store_is_rebuilt(self, projections: Projections) -> None:
        assert projections.rebuild() == (0, 0, 0)
