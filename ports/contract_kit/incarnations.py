"""The contract of `Incarnations`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...domain.identifiers import IncarnationId
from ..incarnations import HeldIncarnation, Incarnation, Incarnations, Liveness


class IncarnationsContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def incarnations(self) -> Incarnations:
        """The implementation, as one process uses it."""
        pytest.fail("override the fixture `incarnations`")

    @pytest.fixture
    def observer(self) -> Incarnations:
        """The same lives, as another process sees them."""
        pytest.fail("override the fixture `observer`")

    @pytest.fixture
    def other_process(self) -> Incarnation:
        """A life of a third process, which ends when it is asked to."""
        pytest.fail("override the fixture `other_process`")

    @pytest.fixture
    def held(self, incarnations: Incarnations) -> Iterator[HeldIncarnation]:
        """A life that has begun."""
        held = incarnations.enter()
        yield held
        held.leave(keep_lock_file=False)

    def test_whoever_entered_is_alive_to_itself_and_to_others(
        self, incarnations: Incarnations, observer: Incarnations, held: HeldIncarnation
    ) -> None:
        assert incarnations.probe(held.incarnation) is Liveness.ALIVE
        assert observer.probe(held.incarnation) is Liveness.ALIVE
        assert observer.probe(held.incarnation) is Liveness.ALIVE

    def test_two_lives_of_one_process_are_told_apart(
        self, incarnations: Incarnations, observer: Incarnations, held: HeldIncarnation
    ) -> None:
        second = incarnations.enter()
        assert second.incarnation.incarnation_id != held.incarnation.incarnation_id
        second.leave(keep_lock_file=True)
        assert observer.probe(second.incarnation) is Liveness.DEAD
        assert observer.probe(held.incarnation) is Liveness.ALIVE

    def test_whoever_left_and_kept_its_lock_file_is_dead(
        self, incarnations: Incarnations, observer: Incarnations, held: HeldIncarnation
    ) -> None:
        held.leave(keep_lock_file=True)
        assert observer.probe(held.incarnation) is Liveness.DEAD
        assert incarnations.probe(held.incarnation) is Liveness.DEAD

    def test_without_its_lock_file_nobody_is_dead(self, observer: Incarnations, held: HeldIncarnation) -> None:
        held.leave(keep_lock_file=False)
        assert observer.probe(held.incarnation) is Liveness.COULD_NOT_LOOK

    def test_leaving_twice_changes_nothing(self, observer: Incarnations, held: HeldIncarnation) -> None:
        held.leave(keep_lock_file=True)
        held.leave(keep_lock_file=False)
        assert observer.probe(held.incarnation) is Liveness.DEAD

    def test_an_incarnation_that_nobody_entered_cannot_be_looked_at(
        self, observer: Incarnations, held: HeldIncarnation
    ) -> None:
        unknown = held.incarnation.model_copy(update={"incarnation_id": IncarnationId("nobody")})
        assert observer.probe(unknown) is Liveness.COULD_NOT_LOOK

    @pytest.mark.parametrize("fact", ["host", "pid_namespace"])
    def test_a_free_lock_of_elsewhere_proves_no_death(
        self, observer: Incarnations, held: HeldIncarnation, fact: str
    ) -> None:
        held.leave(keep_lock_file=True)
        elsewhere = held.incarnation.model_copy(update={fact: "another"})
        assert observer.probe(elsewhere) is Liveness.COULD_NOT_LOOK

    def test_another_boot_of_the_same_host_is_death_even_without_a_lock_file(
        self, observer: Incarnations, held: HeldIncarnation
    ) -> None:
        held.leave(keep_lock_file=False)
        before_boot = held.incarnation.model_copy(update={"boot_id": "another"})
        assert observer.probe(before_boot) is Liveness.DEAD
        elsewhere = before_boot.model_copy(update={"host": "another"})
        assert observer.probe(elsewhere) is Liveness.COULD_NOT_LOOK

    def test_a_lock_that_is_held_is_life_whatever_else_was_recorded(
        self, observer: Incarnations, held: HeldIncarnation
    ) -> None:
        before_boot = held.incarnation.model_copy(update={"boot_id": "another"})
        assert observer.probe(before_boot) is Liveness.ALIVE

    def test_a_takeover_ends_the_recorded_process(self, observer: Incarnations, other_process: Incarnation) -> None:
        assert observer.probe(other_process) is Liveness.ALIVE
        assert observer.end(other_process, timeout_seconds=30.0) is Liveness.DEAD
        assert observer.probe(other_process) is Liveness.DEAD
        assert observer.end(other_process, timeout_seconds=30.0) is Liveness.DEAD

    def test_a_process_with_another_start_time_is_never_ended(
        self, observer: Incarnations, other_process: Incarnation
    ) -> None:
        later = other_process.model_copy(update={"process_start_time": other_process.process_start_time + 1})
        assert observer.end(later, timeout_seconds=1.0) is Liveness.ALIVE
        assert observer.probe(other_process) is Liveness.ALIVE

    @pytest.mark.parametrize("fact", ["host", "pid_namespace", "boot_id"])
    def test_a_process_of_elsewhere_is_never_ended(
        self, observer: Incarnations, other_process: Incarnation, fact: str
    ) -> None:
        elsewhere = other_process.model_copy(update={fact: "another"})
        assert observer.end(elsewhere, timeout_seconds=1.0) is Liveness.ALIVE
        assert observer.probe(other_process) is Liveness.ALIVE

    def test_nobody_ends_itself(self, incarnations: Incarnations, held: HeldIncarnation) -> None:
        assert incarnations.end(held.incarnation, timeout_seconds=1.0) is Liveness.ALIVE
