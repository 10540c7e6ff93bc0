"""The contract of `EventStore`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ...domain.errors import StoreUnavailable
from ...domain.events.run import RunStatus
from ...domain.events.tool import Effect
from ...domain.identifiers import EventId, RunId
from ..event_store import (
    ConstraintBroken,
    DuplicateId,
    EventReader,
    EventStore,
    Fenced,
    Location,
    OwnerGuard,
    Standing,
    Stored,
    VersionConflict,
)
from ..session_owners import SessionOwners
from .recorded_runs import RecordedSession


class EventStoreContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def event_store(self) -> EventStore:
        """An empty store."""
        pytest.fail("override the fixture `event_store`")

    @pytest.fixture
    def owners(self) -> SessionOwners:
        """The owners of the same store."""
        pytest.fail("override the fixture `owners`")

    @pytest.fixture
    def recorded(self, owners: SessionOwners) -> RecordedSession:
        """A session that is owned and has no event."""
        recorded = RecordedSession()
        recorded.own(owners)
        return recorded

    @pytest.fixture
    def opened(self, event_store: EventStore, recorded: RecordedSession) -> RecordedSession:
        """A session with one open run."""
        recorded.keep(event_store, *recorded.opened())
        return recorded

    @pytest.fixture
    def view(self, event_store: EventStore, opened: RecordedSession) -> Iterator[EventReader]:
        """A view of the store as it is when the test begins."""
        with event_store.snapshot() as reader:
            yield reader

    def test_what_was_kept_is_read_back_byte_for_byte(self, event_store: EventStore, recorded: RecordedSession) -> None:
        commit = recorded.keep(event_store, *recorded.opened())
        with event_store.snapshot() as reader:
            streams = {sealed.stream for sealed in commit.events}
            found = [record for stream in sorted(streams) for record in reader.read(stream)]
        assert sorted(found) == sorted(sealed.record for sealed in commit.events)

    def test_a_stream_is_read_page_by_page(self, event_store: EventStore, opened: RecordedSession) -> None:
        opened.keep(event_store, *(opened.text(f"{n}") for n in range(5)))
        stream = f"run:{opened.run_id()}"
        with event_store.snapshot() as reader:
            whole = reader.read(stream)
            assert [record.version for record in whole] == [1, 2, 3, 4, 5, 6, 7]
            assert list(reader.read(stream, after=2, limit=3)) == list(whole[2:5])
            assert list(reader.read(stream, after=5, limit=3)) == list(whole[5:])
            assert list(reader.read(stream, after=7)) == []
            assert list(reader.read("run:unknown")) == []
            assert reader.last(stream) == whole[-1]
            assert reader.last("run:unknown") is None

    @pytest.mark.parametrize("limit", [128, 200, 1_000, 10_000])
    def test_a_page_is_full_unless_its_stream_ends(
        self, event_store: EventStore, opened: RecordedSession, limit: int
    ) -> None:
        """A shorter page in the middle would hide what follows it, such as a call whose outcome nobody knows."""
        for _ in range(6):
            opened.keep(event_store, *(opened.text("more") for _ in range(200)))
        with event_store.snapshot() as reader:
            page = reader.read(f"run:{opened.run_id()}", limit=limit)
        assert [record.version for record in page] == [*range(1, min(limit, 1_202) + 1)]

    @pytest.mark.parametrize("limit", [0, -1, 10_001])
    def test_a_page_has_bounds(self, view: EventReader, limit: int) -> None:
        with pytest.raises(ValueError, match="limit"):
            view.read("run:a", limit=limit)

    def test_an_event_is_found_by_its_id(self, event_store: EventStore, recorded: RecordedSession) -> None:
        commit = recorded.keep(event_store, *recorded.opened())
        with event_store.snapshot() as reader:
            for sealed in commit.events:
                assert reader.locate(sealed.event.event_id) == Location(sealed.stream, sealed.sequence)
            assert reader.locate(EventId("unknown")) is None

    def test_a_view_does_not_show_later_commits(
        self, event_store: EventStore, opened: RecordedSession, view: EventReader
    ) -> None:
        before = view.read(f"run:{opened.run_id()}")
        later = opened.keep(event_store, opened.text("later")).events[0]
        assert view.read(f"run:{opened.run_id()}") == before
        assert view.last(f"run:{opened.run_id()}") == before[-1]
        assert view.locate(later.event.event_id) is None

    def test_an_open_view_blocks_no_writer(
        self, event_store: EventStore, opened: RecordedSession, view: EventReader
    ) -> None:
        """Field report r3-082."""
        first = view.read(f"run:{opened.run_id()}", limit=1)
        for n in range(20):
            opened.keep(event_store, opened.text(f"{n}"))
        rest = view.read(f"run:{opened.run_id()}", after=1)
        assert [record.version for record in (*first, *rest)] == [1, 2]

    def test_text_of_every_kind_survives(self, event_store: EventStore, opened: RecordedSession) -> None:
        said = "naïve 😀 \u2028 \x00 \x1f \" \\ ' ; -- %s ? Z" + "x" * 700_000
        kept = opened.keep(event_store, opened.text(said)).events[0]
        nested: list[object] = []
        for _ in range(150):
            nested = [nested]
        deep = opened.keep(event_store, opened.called("deep", args={"deep": nested})).events[0]  # type: ignore[dict-item]
        with event_store.snapshot() as reader:
            assert [record.state for record in reader.read(kept.stream, after=2)] == [kept.state, deep.state]

    def test_nothing_to_keep_has_no_answers(self, event_store: EventStore) -> None:
        assert list(event_store.append([])) == []

    def test_a_commit_without_events_keeps_nothing_and_is_stored_unless_it_is_fenced(
        self, event_store: EventStore, opened: RecordedSession
    ) -> None:
        fenced = OwnerGuard(opened.session_id, opened.guard.incarnation_id, 7)
        assert event_store.append([opened.commit()]) == [Stored()]
        assert event_store.append([opened.commit(guard=fenced)]) == [Fenced(opened.session_id, 7)]
        commits = [opened.commit(), opened.commit(opened.text("between")), opened.commit(guard=fenced)]
        assert event_store.append(commits) == [Stored(), Stored(), Fenced(opened.session_id, 7)]
        assert event_store.append([opened.commit(), opened.commit()]) == [Stored(), Stored()]
        with event_store.snapshot() as reader:
            assert len(reader.read(f"run:{opened.run_id()}")) == 3
        opened.keep(event_store, opened.text("after it"))

    def test_one_commit_goes_into_several_streams_or_into_none(
        self, event_store: EventStore, opened: RecordedSession
    ) -> None:
        other = opened.fork()
        opened.keep(event_store, opened.text("first"))
        both = other.commit(*other.opened("b"), other.text("second", "a"))
        assert event_store.append([both]) == [VersionConflict(f"run:{opened.run_id()}")]
        with event_store.snapshot() as reader:
            assert reader.last(f"run:{opened.run_id('b')}") is None
            assert len(reader.read(f"session:{opened.session_id}")) == 2

    def test_a_refused_commit_leaves_its_neighbours_untouched(
        self, event_store: EventStore, owners: SessionOwners, opened: RecordedSession
    ) -> None:
        loser, neighbour, stranger = opened.fork(), RecordedSession("two"), RecordedSession("three")
        neighbour.own(owners)
        commits = [
            opened.commit(opened.text("first")),
            loser.commit(loser.text("late")),
            neighbour.commit(*neighbour.opened()),
            stranger.commit(*stranger.opened()),
            opened.commit(opened.text("second")),
        ]
        assert event_store.append(commits) == [
            Stored(),
            VersionConflict(f"run:{opened.run_id()}"),
            Stored(),
            Fenced(stranger.session_id, 1),
            Stored(),
        ]
        with event_store.snapshot() as reader:
            assert [record.version for record in reader.read(f"run:{opened.run_id()}")] == [1, 2, 3, 4]
            assert len(reader.read(f"run:{neighbour.run_id()}")) == 2
            assert not reader.read(f"run:{stranger.run_id()}")

    def test_a_commit_refused_at_its_last_event_leaves_nothing_of_its_first(
        self, event_store: EventStore, owners: SessionOwners, opened: RecordedSession
    ) -> None:
        neighbour = RecordedSession("two")
        neighbour.own(owners)
        opened.keep(event_store, opened.called("x"), opened.dispatched("x"))
        half = opened.commit(opened.text("fits"), opened.dispatched("x"))
        answers = event_store.append([half, neighbour.commit(*neighbour.opened())])
        assert answers == [DuplicateId("operation", opened.operation_id("x")), Stored()]
        with event_store.snapshot() as reader:
            assert len(reader.read(f"run:{opened.run_id()}")) == 4
            assert reader.locate(half.events[0].event.event_id) is None
            assert len(reader.read(f"run:{neighbour.run_id()}")) == 2

    def test_a_commit_that_builds_on_a_refused_one_is_refused(
        self, event_store: EventStore, opened: RecordedSession
    ) -> None:
        taken = opened.fork()
        opened.keep(event_store, opened.text("first"))
        commits = [taken.commit(taken.text("lost")), taken.commit(taken.text("on top of it"))]
        conflict = VersionConflict(f"run:{opened.run_id()}")
        assert event_store.append(commits) == [conflict, conflict]

    def test_a_commit_sealed_after_an_event_that_lost_its_place_is_refused(
        self, event_store: EventStore, opened: RecordedSession
    ) -> None:
        """Its version fits, its chain does not: kept, it would read as damage for ever."""
        other = opened.fork()
        other.commit(other.text("loses its place"))
        opened.keep(event_store, opened.text("takes it"))
        assert event_store.append([other.commit(other.text("on top"))]) == [VersionConflict(f"run:{opened.run_id()}")]

    @pytest.mark.parametrize("together", [False, True], ids=["in a later call", "in the same call"])
    def test_an_event_id_is_used_once(self, event_store: EventStore, opened: RecordedSession, together: bool) -> None:
        first = opened.commit(opened.text("first"))
        same_id = opened.text("second").model_copy(update={"event_id": first.events[0].event.event_id})
        second = opened.commit(same_id)
        answers = (
            event_store.append([first, second])
            if together
            else [*event_store.append([first]), *event_store.append([second])]
        )
        assert answers == [Stored(), DuplicateId("event", first.events[0].event.event_id)]

    def test_an_event_id_is_used_once_within_a_commit(self, event_store: EventStore, opened: RecordedSession) -> None:
        text = opened.text("twice")
        assert event_store.append([opened.commit(text, text)]) == [DuplicateId("event", text.event_id)]

    def test_the_same_commit_again_is_a_duplicate_whoever_owns_the_session_now(
        self, event_store: EventStore, owners: SessionOwners, opened: RecordedSession
    ) -> None:
        commit = opened.keep(event_store, opened.text("once"))
        owners.release(*opened.guard)
        assert event_store.append([commit]) == [DuplicateId("event", commit.events[0].event.event_id)]

    def test_a_stale_owner_is_fenced_before_its_versions_are_looked_at(
        self, event_store: EventStore, owners: SessionOwners, opened: RecordedSession
    ) -> None:
        """Field report r3-075."""
        stale = opened.fork()
        owners.release(*opened.guard)
        opened.own(owners)
        assert opened.guard.epoch == 1
        present = OwnerGuard(opened.session_id, opened.guard.incarnation_id, 2)
        assert event_store.append([opened.commit(opened.text("new"), guard=present)]) == [Stored()]
        assert event_store.append([stale.commit(stale.text("old"))]) == [Fenced(opened.session_id, 1)]

    @pytest.mark.parametrize(
        "guard",
        [
            OwnerGuard(RecordedSession().session_id, RecordedSession("x", "another").guard.incarnation_id, 1),
            OwnerGuard(RecordedSession().session_id, RecordedSession().guard.incarnation_id, 2),
            OwnerGuard(RecordedSession("never owned").session_id, RecordedSession().guard.incarnation_id, 1),
        ],
        ids=["incarnation", "epoch", "session"],
    )
    def test_a_guard_that_is_not_the_owner_is_fenced(
        self, event_store: EventStore, opened: RecordedSession, guard: OwnerGuard
    ) -> None:
        answer = event_store.append([opened.commit(opened.text("no"), guard=guard)])
        assert answer == [Fenced(guard.session_id, guard.epoch)]

    def test_versions_have_no_gaps(self, event_store: EventStore, opened: RecordedSession) -> None:
        opened.commit(opened.text("never handed over"))
        assert event_store.append([opened.commit(opened.text("after it"))]) == [
            VersionConflict(f"run:{opened.run_id()}")
        ]

    def test_an_operation_id_is_used_once(self, event_store: EventStore, opened: RecordedSession) -> None:
        opened.keep(event_store, opened.called("x"), opened.dispatched("x"))
        opened.keep(event_store, opened.responded("x"))
        again = opened.commit(opened.dispatched("x"))
        assert event_store.append([again]) == [DuplicateId("operation", opened.operation_id("x"))]

    def test_a_claim_id_is_used_once(self, event_store: EventStore, opened: RecordedSession) -> None:
        opened.keep(event_store, opened.ended())
        opened.keep(event_store, opened.claimed())
        opened.keep(event_store, *opened.opened("b"), opened.ended("b"))
        claim = opened.claimed("claim", "b")
        assert event_store.append([opened.commit(claim)]) == [DuplicateId("claim", claim.claim_id)]

    def test_a_run_is_admitted_once(
        self, event_store: EventStore, owners: SessionOwners, opened: RecordedSession
    ) -> None:
        other = RecordedSession("two")
        other.own(owners)
        first, admitted, *_ = other.opened()
        stolen = admitted.model_copy(update={"run_id": opened.run_id()})
        assert event_store.append([other.commit(first, stolen)]) == [DuplicateId("run", opened.run_id())]

    def test_after_the_terminal_event_only_listed_facts_follow(
        self, event_store: EventStore, opened: RecordedSession
    ) -> None:
        """SPEC F3."""
        opened.keep(event_store, opened.called("x"), opened.dispatched("x"), opened.asked("y"))
        opened.keep(event_store, opened.ended())
        for refused in (opened.text("late"), opened.ended(status=RunStatus.COMPLETED), opened.called("z")):
            (answer,) = event_store.append([opened.fork().commit(refused)])
            assert isinstance(answer, ConstraintBroken), refused.topic
        opened.keep(event_store, opened.responded("x", effect=Effect.UNKNOWN))
        opened.keep(event_store, opened.decided("y"))
        opened.keep(event_store, opened.claimed())

    def test_within_one_commit_nothing_unlisted_follows_the_terminal_event(
        self, event_store: EventStore, opened: RecordedSession
    ) -> None:
        (answer,) = event_store.append([opened.commit(opened.ended(), opened.text("late"))])
        assert isinstance(answer, ConstraintBroken)
        with event_store.snapshot() as reader:
            assert len(reader.read(f"run:{opened.run_id()}")) == 2

    def test_nothing_follows_a_claim(self, event_store: EventStore, opened: RecordedSession) -> None:
        opened.keep(event_store, opened.called("x"), opened.dispatched("x"), opened.ended())
        opened.keep(event_store, opened.claimed())
        for refused in (opened.responded("x"), opened.claimed("another"), opened.text("late")):
            (answer,) = event_store.append([opened.fork().commit(refused)])
            assert isinstance(answer, ConstraintBroken), refused.topic

    def test_a_run_of_this_store_is_not_foreign(self, view: EventReader, opened: RecordedSession) -> None:
        assert view.standing(opened.run_id()) == Standing(1, 1, behind_anchor=False)
        assert not view.standing(opened.run_id()).foreign

    def test_a_run_that_was_never_admitted_is_foreign(self, view: EventReader) -> None:
        assert view.standing(RunId("elsewhere")) == Standing(None, 1, behind_anchor=False)
        assert view.standing(RunId("elsewhere")).foreign

    def test_threads_that_own_different_sessions_all_write(
        self, event_store: EventStore, owners: SessionOwners
    ) -> None:
        """Field report r3-087: nobody's events are lost, and no version is missing."""
        sessions = [RecordedSession(f"thread-{n}") for n in range(4)]
        for one in sessions:
            one.own(owners)

        def write(one: RecordedSession) -> None:
            one.keep(event_store, *one.opened())
            for n in range(15):
                one.keep(event_store, one.text(f"{n}"))

        threads = [threading.Thread(target=write, args=(one,)) for one in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        with event_store.snapshot() as reader:
            for one in sessions:
                versions = [record.version for record in reader.read(f"run:{one.run_id()}")]
                assert versions == list(range(1, 18))

    def test_a_closed_store_can_not_look(self, event_store: EventStore, opened: RecordedSession) -> None:
        event_store.close()
        event_store.close()
        with pytest.raises(StoreUnavailable):
            event_store.append([opened.commit(opened.text("late"))])
        with pytest.raises(StoreUnavailable), event_store.snapshot():
            pass
