"""The contract of `SessionOwners`."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from ...domain.identifiers import IncarnationId, SessionId
from ..session_owners import TOGETHER_MAX, Ownership, SessionOwners
from .recorded_runs import incarnation_named

SESSION = SessionId("session")
FIRST, SECOND = IncarnationId("first"), IncarnationId("second")


class SessionOwnersContract:
    """Subclass it, override the fixture, and pytest checks an implementation of the port."""

    @pytest.fixture
    def owners(self) -> SessionOwners:
        """Nobody owns anything."""
        pytest.fail("override the fixture `owners`")

    @pytest.fixture
    def registered(self, owners: SessionOwners) -> SessionOwners:
        """Two lives are recorded."""
        for name in (FIRST, SECOND):
            owners.register(incarnation_named(name))
        return owners

    def test_a_session_that_was_never_owned_has_no_row(self, owners: SessionOwners) -> None:
        assert owners.owner(SESSION) is None

    def test_whoever_takes_a_session_first_gets_epoch_one(self, registered: SessionOwners) -> None:
        taken = registered.take(SESSION, FIRST, None)
        assert taken == Ownership(SESSION, FIRST, 1)
        assert registered.owner(SESSION) == taken

    def test_whoever_looked_too_early_gets_nothing(self, registered: SessionOwners) -> None:
        first = registered.take(SESSION, FIRST, None)
        assert registered.take(SESSION, SECOND, None) is None
        assert registered.owner(SESSION) == first

    def test_taking_over_raises_the_epoch(self, registered: SessionOwners) -> None:
        first = registered.take(SESSION, FIRST, None)
        second = registered.take(SESSION, SECOND, first)
        assert second == Ownership(SESSION, SECOND, 2)
        assert registered.take(SESSION, FIRST, first) is None

    def test_a_released_session_keeps_its_epoch(self, registered: SessionOwners) -> None:
        registered.take(SESSION, FIRST, None)
        assert registered.release(SESSION, FIRST, 1)
        free = registered.owner(SESSION)
        assert free == Ownership(SESSION, None, 1)
        assert registered.take(SESSION, SECOND, free) == Ownership(SESSION, SECOND, 2)

    @pytest.mark.parametrize(("incarnation", "epoch"), [(SECOND, 1), (FIRST, 2)])
    def test_only_the_owner_releases(self, registered: SessionOwners, incarnation: IncarnationId, epoch: int) -> None:
        taken = registered.take(SESSION, FIRST, None)
        assert not registered.release(SESSION, incarnation, epoch)
        assert registered.owner(SESSION) == taken

    def test_releasing_twice_says_no(self, registered: SessionOwners) -> None:
        registered.take(SESSION, FIRST, None)
        assert registered.release(SESSION, FIRST, 1)
        assert not registered.release(SESSION, FIRST, 1)

    def test_releasing_what_was_never_owned_says_no(self, registered: SessionOwners) -> None:
        assert not registered.release(SESSION, FIRST, 1)
        assert registered.owner(SESSION) is None

    def test_sessions_are_owned_independently(self, registered: SessionOwners) -> None:
        registered.take(SESSION, FIRST, None)
        assert registered.take(SessionId("other"), SECOND, None) == Ownership(SessionId("other"), SECOND, 1)

    def test_the_facts_of_a_life_are_read_back(self, registered: SessionOwners) -> None:
        assert registered.incarnation(FIRST) == incarnation_named(FIRST)
        assert registered.incarnation(IncarnationId("unknown")) is None

    def test_recording_a_life_again_changes_nothing(self, registered: SessionOwners) -> None:
        registered.register(incarnation_named(FIRST))
        other = incarnation_named(FIRST).model_copy(update={"pid": 2})
        with pytest.raises(ValueError, match="other facts"):
            registered.register(other)
        assert registered.incarnation(FIRST) == incarnation_named(FIRST)

    def test_a_life_that_is_not_recorded_owns_nothing(self, owners: SessionOwners) -> None:
        with pytest.raises(ValueError, match="never registered"):
            owners.take(SESSION, FIRST, None)
        assert owners.owner(SESSION) is None

    def test_many_sessions_are_taken_together_but_for_those_that_have_changed(self, registered: SessionOwners) -> None:
        seen = [registered.take(SessionId(name), FIRST, None) for name in "abc"]
        rows = [row for row in seen if row is not None]
        moved = registered.take(SessionId("b"), SECOND, rows[1])
        assert list(registered.take_all(SECOND, rows)) == [
            Ownership(SessionId("a"), SECOND, 2),
            None,
            Ownership(SessionId("c"), SECOND, 2),
        ]
        assert registered.owner(SessionId("b")) == moved
        assert list(registered.take_all(FIRST, rows)) == [None, None, None]
        assert registered.owner(SessionId("a")) == Ownership(SessionId("a"), SECOND, 2)

    def test_many_sessions_are_released_together_each_by_its_owner_alone(self, registered: SessionOwners) -> None:
        taken = [registered.take(SessionId(name), FIRST, None) for name in "abc"]
        rows = [row for row in taken if row is not None]
        assert registered.take(SessionId("b"), SECOND, rows[1]) is not None
        assert list(registered.release_all(rows)) == [True, False, True]
        assert registered.owner(SessionId("a")) == Ownership(SessionId("a"), None, 1)
        assert registered.owner(SessionId("b")) == Ownership(SessionId("b"), SECOND, 2)
        assert list(registered.release_all(rows)) == [False, False, False]

    def test_none_together_are_none(self, registered: SessionOwners) -> None:
        assert (list(registered.take_all(FIRST, [])), list(registered.release_all([]))) == ([], [])

    def test_a_life_that_is_not_recorded_owns_nothing_together_either(self, registered: SessionOwners) -> None:
        row = registered.take(SESSION, FIRST, None)
        assert row is not None
        with pytest.raises(ValueError, match="never registered"):
            registered.take_all(IncarnationId("third"), [row])
        assert registered.owner(SESSION) == row

    @pytest.mark.parametrize("rows", [["s", "s"], [f"s{n}" for n in range(TOGETHER_MAX + 1)]], ids=["twice", "many"])
    def test_a_bound_on_what_is_changed_together(self, registered: SessionOwners, rows: list[str]) -> None:
        asked = [Ownership(SessionId(name), FIRST, 1) for name in rows]
        for change in (partial(registered.take_all, SECOND), registered.release_all):
            with pytest.raises(ValueError, match="different sessions"):
                change(asked)

    def test_of_many_who_take_at_once_one_wins(self, owners: SessionOwners) -> None:
        names = [IncarnationId(f"life-{n}") for n in range(8)]
        for name in names:
            owners.register(incarnation_named(name))
        taken: list[Ownership | None] = []
        start = threading.Barrier(len(names))

        def take(name: IncarnationId) -> None:
            start.wait()
            taken.append(owners.take(SESSION, name, None))

        threads = [threading.Thread(target=take, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        winners = [one for one in taken if one is not None]
        assert len(taken) == len(names)
        assert winners == [owners.owner(SESSION)]
