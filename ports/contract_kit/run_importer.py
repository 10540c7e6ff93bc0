"""The contract of `RunImporter`."""

from __future__ import annotations

import pytest

from ..event_store import Commit, DuplicateId, EventStore, Fenced, OwnerGuard, Standing, Stored, VersionConflict
from ..run_importer import RunImporter
from ..session_owners import SessionOwners
from .recorded_runs import RecordedSession


class RunImporterContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def importer(self) -> RunImporter:
        """The importer of an empty store."""
        pytest.fail("override the fixture `importer`")

    @pytest.fixture
    def event_store(self) -> EventStore:
        """The same store's streams."""
        pytest.fail("override the fixture `event_store`")

    @pytest.fixture
    def owners(self) -> SessionOwners:
        """The same store's owners."""
        pytest.fail("override the fixture `owners`")

    @pytest.fixture
    def recorded(self, owners: SessionOwners) -> RecordedSession:
        """A session that is owned and has no event."""
        recorded = RecordedSession()
        recorded.own(owners)
        return recorded

    @pytest.fixture
    def imported(self, recorded: RecordedSession) -> Commit:
        """Two ended runs, as a file holds them."""
        first = [*recorded.opened("a"), recorded.ended("a")]
        return recorded.commit(*first, *recorded.opened("b"), recorded.ended("b"))

    def test_what_was_imported_is_read_back_byte_for_byte(
        self, importer: RunImporter, event_store: EventStore, imported: Commit
    ) -> None:
        assert importer.import_runs(imported) == Stored()
        with event_store.snapshot() as reader:
            streams = {sealed.stream for sealed in imported.events}
            found = [record for stream in sorted(streams) for record in reader.read(stream)]
        assert sorted(found) == sorted(sealed.record for sealed in imported.events)

    def test_imported_runs_are_foreign(
        self, importer: RunImporter, event_store: EventStore, recorded: RecordedSession, imported: Commit
    ) -> None:
        importer.import_runs(imported)
        with event_store.snapshot() as reader:
            for name in "ab":
                assert reader.standing(recorded.run_id(name)) == Standing(0, 1, behind_anchor=False)
                assert reader.standing(recorded.run_id(name)).foreign

    def test_a_run_that_follows_in_the_same_session_is_not_foreign(
        self, importer: RunImporter, event_store: EventStore, recorded: RecordedSession, imported: Commit
    ) -> None:
        importer.import_runs(imported)
        recorded.keep(event_store, *recorded.opened("c"))
        with event_store.snapshot() as reader:
            assert not reader.standing(recorded.run_id("c")).foreign

    def test_runs_that_were_there_stay_what_they_are(
        self, importer: RunImporter, event_store: EventStore, owners: SessionOwners, imported: Commit
    ) -> None:
        neighbour = RecordedSession("two")
        neighbour.own(owners)
        neighbour.keep(event_store, *neighbour.opened())
        importer.import_runs(imported)
        with event_store.snapshot() as reader:
            assert not reader.standing(neighbour.run_id()).foreign

    def test_an_import_that_does_not_fit_adds_nothing(
        self, importer: RunImporter, event_store: EventStore, recorded: RecordedSession, owners: SessionOwners
    ) -> None:
        taken = RecordedSession("two")
        taken.own(owners)
        first = taken.keep(event_store, *taken.opened())
        ended = recorded.ended().model_copy(update={"event_id": first.events[0].event.event_id})
        answer = importer.import_runs(recorded.commit(*recorded.opened(), ended))
        assert answer == DuplicateId("event", first.events[0].event.event_id)
        with event_store.snapshot() as reader:
            assert reader.last(f"session:{recorded.session_id}") is None
            assert reader.last(f"run:{recorded.run_id()}") is None
            assert reader.standing(recorded.run_id()).run_generation is None

    def test_an_import_by_somebody_else_is_fenced(
        self, importer: RunImporter, recorded: RecordedSession, imported: Commit
    ) -> None:
        stranger = OwnerGuard(recorded.session_id, recorded.guard.incarnation_id, 7)
        assert importer.import_runs(Commit(stranger, imported.events)) == Fenced(recorded.session_id, 7)

    def test_an_import_into_a_session_that_has_moved_on_is_refused(
        self, importer: RunImporter, event_store: EventStore, recorded: RecordedSession
    ) -> None:
        other = recorded.fork()
        recorded.keep(event_store, *recorded.opened())
        answer = importer.import_runs(other.commit(*other.opened("z")))
        assert answer == VersionConflict(f"session:{recorded.session_id}")
