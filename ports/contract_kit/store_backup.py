"""The contract of `StoreBackup`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import pytest

from ...domain.errors import StoreError, StoreMissing, StoreNotAdopted
from ...domain.sealing import StoredRecord
from ..event_store import EventStore
from ..session_owners import SessionOwners
from ..store_backup import CopyTargetTaken, StoreBackup, StoreCopy, StoreInUse
from ..store_keeping import StoreKeeping, Trust
from .recorded_runs import NOON, RecordedSession


class StoreAtWork(Protocol):
    """A store as a program works on it."""

    @property
    def events(self) -> EventStore:
        """Its streams."""

    @property
    def owners(self) -> SessionOwners:
        """Its owners."""

    @property
    def keeping(self) -> StoreKeeping:
        """The store as a whole."""


class Places(Protocol):
    """Where stores and copies stand."""

    @abstractmethod
    def backup(self, name: str) -> StoreBackup:
        """Of the store with a name, which need not be there."""

    @abstractmethod
    def opened(self, name: str | Path) -> AbstractContextManager[StoreAtWork]:
        """Work on a store; it is made where there is none."""

    @abstractmethod
    def used_elsewhere(self, name: str) -> AbstractContextManager[None]:
        """Let another program work on a store that is there."""

    @abstractmethod
    def file(self, name: str) -> Path:
        """The name of a file."""

    @abstractmethod
    def is_there(self, file: Path) -> bool:
        """Tell whether something has that name."""


class Refused(Exception):
    """A check did not like a copy."""


def liked(path: Path, copy: StoreCopy) -> None:
    """Whatever it holds."""


def disliked(path: Path, copy: StoreCopy) -> None:
    """Never."""
    raise Refused


class StoreBackupContract:
    """Subclass it, override the fixture, and pytest checks an implementation of the port."""

    @pytest.fixture
    def places(self) -> Places:
        """Empty ones."""
        pytest.fail("override the fixture `places`")

    @pytest.fixture
    def session(self, places: Places) -> RecordedSession:
        """A session with an open run, in the store `store`."""
        session = RecordedSession()
        with places.opened("store") as store:
            session.own(store.owners)
            session.keep(store.events, *session.opened())
        return session

    def test_a_copy_holds_what_the_store_held_while_others_go_on(
        self, places: Places, session: RecordedSession
    ) -> None:
        file = places.file("copy")
        with places.opened("store") as store:
            before = content(store)
            copy = places.backup("store").back_up(file, liked)
            session.keep(store.events, session.text("later"))
        assert (copy.events, copy.fault) == (len(before), None)
        assert copy.size_bytes > 0
        with places.opened(file) as copied:
            assert content(copied) == before
            assert copied.keeping.condition().store_id == copy.store_id

    def test_equal_events_have_equal_digests_and_others_have_not(
        self, places: Places, session: RecordedSession
    ) -> None:
        backup = places.backup("store")
        first, second = (backup.back_up(places.file(name), liked) for name in ("first", "second"))
        assert first.digest == second.digest
        with places.opened("store") as store:
            session.keep(store.events, session.text("later"))
        assert backup.back_up(places.file("third"), liked).digest != first.digest

    def test_a_copy_is_looked_at_before_it_has_its_name(self, places: Places, session: RecordedSession) -> None:
        file, seen = places.file("copy"), list[int]()

        def look(path: Path, copy: StoreCopy) -> None:
            assert not places.is_there(file)
            with places.opened(path) as unfinished:
                seen.append(len(content(unfinished)))

        assert [places.backup("store").back_up(file, look).events] == seen
        assert places.is_there(file)

    def test_a_copy_that_is_not_liked_leaves_nothing(self, places: Places, session: RecordedSession) -> None:
        file, unfinished = places.file("copy"), list[Path]()

        def look(path: Path, copy: StoreCopy) -> None:
            unfinished.append(path)
            raise Refused

        with pytest.raises(Refused):
            places.backup("store").back_up(file, look)
        assert not places.is_there(file)
        assert not places.is_there(unfinished[0])

    def test_a_name_that_is_taken_stays_as_it_is(self, places: Places, session: RecordedSession) -> None:
        file = places.file("copy")
        places.backup("store").back_up(file, liked)
        with places.opened("store") as store:
            session.keep(store.events, session.text("later"))
        with pytest.raises(CopyTargetTaken) as taken:
            places.backup("store").back_up(file, liked)
        assert taken.value.file == file
        with places.opened(file) as copied:
            assert len(content(copied)) == 4

    def test_where_there_is_no_store_there_is_no_copy(self, places: Places) -> None:
        with pytest.raises(StoreMissing):
            places.backup("store").back_up(places.file("copy"), liked)
        assert not places.is_there(places.file("copy"))

    def test_a_copy_is_foreign_until_it_is_adopted(self, places: Places, session: RecordedSession) -> None:
        file = places.file("copy")
        places.backup("store").back_up(file, liked)
        with places.opened(file) as copied:
            assert copied.keeping.condition().trust is Trust.COPIED
            with pytest.raises(StoreNotAdopted):
                copied.events.append([session.commit(session.text("no"))])
            assert copied.keeping.adopt(by="somebody", note="mine", at=NOON).trust is Trust.OK

    def test_a_restored_store_holds_the_copys_events_and_what_was_there_is_kept(
        self, places: Places, session: RecordedSession
    ) -> None:
        file, backup = places.file("copy"), places.backup("store")
        made = backup.back_up(file, liked)
        with places.opened("store") as store:
            before = content(store)
            session.keep(store.events, session.text("later"))
            later = content(store)
        restored = backup.restore(file, liked, NOON)
        assert (restored.copy.events, restored.copy.digest) == (made.events, made.digest)
        with places.opened("store") as store:
            assert store.keeping.condition().trust is Trust.COPIED_BEHIND_ANCHOR
            with store.events.snapshot() as reader:
                standing = reader.standing(session.run_id())
            assert (standing.copied, standing.behind_anchor) == (True, True)
            assert content(store) == before
        assert restored.previous is not None
        with places.opened(restored.previous) as previous:
            assert content(previous) == later
            assert previous.keeping.condition().trust is Trust.OK
        with places.opened(file) as copied:
            assert content(copied) == before

    def test_a_restored_store_that_lost_nothing_is_a_copy_and_no_more(
        self, places: Places, session: RecordedSession
    ) -> None:
        file, backup = places.file("copy"), places.backup("store")
        backup.back_up(file, liked)
        backup.restore(file, liked, NOON)
        with places.opened("store") as store:
            assert store.keeping.condition().trust is Trust.COPIED
            with store.events.snapshot() as reader:
                standing = reader.standing(session.run_id())
            assert (standing.copied, standing.behind_anchor) == (True, False)

    def test_a_store_is_restored_where_none_was(self, places: Places, session: RecordedSession) -> None:
        file = places.file("copy")
        places.backup("store").back_up(file, liked)
        assert places.backup("elsewhere").restore(file, liked, NOON).previous is None
        with places.opened("elsewhere") as store:
            assert len(content(store)) == 4

    def test_a_store_in_use_is_not_replaced(self, places: Places, session: RecordedSession) -> None:
        file, backup = places.file("copy"), places.backup("store")
        backup.back_up(file, liked)
        with places.opened("store") as store:
            session.keep(store.events, session.text("later"))
        with places.used_elsewhere("store"), pytest.raises(StoreInUse):
            backup.restore(file, liked, NOON)
        with places.opened("store") as store:
            assert (len(content(store)), store.keeping.condition().trust) == (5, Trust.OK)
        assert backup.restore(file, liked, NOON).previous is not None

    def test_a_copy_that_is_not_liked_takes_no_place(self, places: Places, session: RecordedSession) -> None:
        file, backup = places.file("copy"), places.backup("store")
        backup.back_up(file, liked)
        with places.opened("store") as store:
            session.keep(store.events, session.text("later"))
        with pytest.raises(Refused):
            backup.restore(file, disliked, NOON)
        with places.opened("store") as store:
            assert (len(content(store)), store.keeping.condition().trust) == (5, Trust.OK)

    def test_what_is_not_there_is_not_restored(self, places: Places, session: RecordedSession) -> None:
        backup = places.backup("store")
        for file in (places.file("missing"), places.file("store")):
            with pytest.raises(StoreError):
                backup.restore(file, liked, NOON)
        with places.opened("store") as store:
            assert (len(content(store)), store.keeping.condition().trust) == (4, Trust.OK)


def content(store: StoreAtWork) -> Sequence[StoredRecord]:
    """All records, stream by stream."""
    with store.events.snapshot() as reader:
        return [record for name in store.keeping.streams() for record in reader.read(name)]
