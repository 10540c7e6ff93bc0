"""Whoever repairs a session repairs the sessions of its child runs before. SPEC section 11."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost
from safepoint.application import family
from safepoint.application.ownership import Owned
from safepoint.application.repair_session import Repaired, RepairKind
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.identifiers import SessionId
from safepoint.ports.incarnations import Liveness

from .ledger_world import World
from .repair_world import Life, all_bytes, endings
from .test_repair_everything import damage, owner

A = SessionId("a")


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost()


@pytest.fixture
def dead(world: World, host: MemoryHost) -> Life:
    return Life(world, host)


@pytest.fixture
def next_(world: World, host: MemoryHost) -> Life:
    return Life(world, host)


def repaired(life: Life, *, cancelled_by: str | None = None) -> Repaired:
    owned = life.ownership.own(A)
    result = life.family(owned, cancelled_by=cancelled_by)
    life.ownership.release(owned)
    return result


def test_grandchildren_come_before_children_and_they_before_the_session_itself(
    world: World, dead: Life, next_: Life
) -> None:
    parent = dead.opens("a", "call")
    child = dead.opens("b", "call", child_of=parent)
    dead.opens("c", child_of=child)
    dead.opens("d", child_of=parent)
    dead.opens("other")
    dead.dies()
    assert next_.family.child_waits(A)
    result = repaired(next_)
    assert (result.session_id, result.kind, result.run_id) == ("a", RepairKind.RUN_CLOSED, "r-a")
    assert next_.repaired == ["r-c", "r-b", "r-d", "r-a"]
    assert endings(world)["run:r-other"] == []
    assert [owner(world, session).incarnation_id for session in "abcd"] == [None] * 4
    assert not next_.family.child_waits(A)


def test_children_are_repaired_although_their_parent_has_ended(world: World, dead: Life, next_: Life) -> None:
    parent = dead.opens("a", "call")
    dead.opens("b", child_of=parent)
    dead.ledger.execute(parent.end())
    dead.dies()
    assert repaired(next_).kind is RepairKind.NOTHING_OPEN
    assert endings(world) == {"run:r-a": ["itself"], "run:r-b": ["app_restarted"]}


def test_repairing_twice_writes_nothing_and_takes_no_child_again(world: World, dead: Life, next_: Life) -> None:
    dead.opens("b", child_of=dead.opens("a", "call"))
    dead.dies()
    repaired(next_)
    before, epoch = all_bytes(world), owner(world, "b").epoch
    repaired(next_)
    assert (all_bytes(world), owner(world, "b").epoch) == (before, epoch)


def test_what_a_person_stops_is_stopped_with_its_children(world: World, dead: Life, next_: Life) -> None:
    dead.opens("b", child_of=dead.opens("a", "call"))
    dead.dies()
    repaired(next_, cancelled_by="Ada")
    assert endings(world) == {"run:r-a": ["cancelled"], "run:r-b": ["cancelled"]}


@pytest.mark.parametrize("liveness", [Liveness.ALIVE, Liveness.COULD_NOT_LOOK])
def test_a_child_whose_owner_is_not_proven_dead_is_left_alone(
    world: World, host: MemoryHost, dead: Life, next_: Life, liveness: Liveness
) -> None:
    other = Life(world, host)
    other.opens("b", child_of=dead.opens("a", "call"))
    dead.dies()
    next_.incarnations.tell(other.ownership.incarnation, liveness)
    assert not next_.family.child_waits(A)
    assert repaired(next_).kind is RepairKind.RUN_CLOSED
    assert endings(world) == {"run:r-a": ["app_restarted"], "run:r-b": []}


def test_a_child_that_this_process_drives_is_left_alone(world: World, next_: Life) -> None:
    next_.opens("b", child_of=next_.opens("a", "call"))
    next_.ownership.own(SessionId("b"))
    assert repaired(next_).kind is RepairKind.RUN_CLOSED
    assert endings(world)["run:r-b"] == []


def test_a_damaged_child_does_not_stop_its_parent(world: World, dead: Life, next_: Life) -> None:
    parent = dead.opens("a", "call")
    dead.opens("b", child_of=parent)
    damage(dead, "c")
    dead.dies()
    assert repaired(next_).kind is RepairKind.RUN_CLOSED
    assert endings(world)["run:r-b"] == ["app_restarted"]


def test_a_damaged_child_is_left_to_the_dead_so_that_each_start_names_it(memory: World, host: MemoryHost) -> None:
    dead, next_ = Life(memory, host), Life(memory, host)
    dead.opens("b", child_of=dead.opens("a", "call"))
    dead.dies()
    assert isinstance(memory.store, MemoryStore)
    tables = memory.store._tables
    row = tables.streams["run:r-b"][0]
    tables.records[row] = tables.records[row]._replace(state=tables.records[row].state.replace(b"2026", b"2027"))
    assert repaired(next_).kind is RepairKind.RUN_CLOSED
    assert owner(memory, "b").incarnation_id == dead.ownership.incarnation.incarnation_id
    assert [one.session_id for one in Life(memory, host)().quarantined] == ["b"]


def test_somebody_who_takes_a_child_at_the_same_moment_has_it(world: World, host: MemoryHost, next_: Life) -> None:
    dead, other = Life(world, host), Life(world, host)
    dead.opens("b", child_of=dead.opens("a", "call"))
    dead.dies()
    repair = next_.repair

    def overtaken(owned: Owned, *, cancelled_by: str | None = None) -> Repaired:
        if owned.session_id == "b":
            taken = world.owners.take(owned.session_id, other.ownership.incarnation.incarnation_id, owner(world, "b"))
            assert taken is not None
        return repair(owned, cancelled_by=cancelled_by)

    next_.family._repair = overtaken  # type: ignore[assignment]
    assert repaired(next_).kind is RepairKind.RUN_CLOSED
    assert endings(world)["run:r-b"] == []
    assert owner(world, "b").incarnation_id == other.ownership.incarnation.incarnation_id


def test_a_store_that_fails_under_a_child_stops_the_parent_too_and_trying_again_goes_on(
    world: World, dead: Life, next_: Life
) -> None:
    dead.opens("b", child_of=dead.opens("a", "call"))
    dead.dies()
    world.events.before_append(lambda: world.fail_commit(stored=True))
    owned = next_.ownership.own(A)
    with pytest.raises(StoreUnavailable):
        next_.family(owned)
    next_.ownership.keep(owned)
    assert repaired(next_).kind is RepairKind.RUN_CLOSED
    assert endings(world) == {"run:r-a": ["app_restarted"], "run:r-b": ["app_restarted"]}


def test_so_many_generations_are_followed_and_no_more(dead: Life, next_: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "GENERATIONS_MAX", 2)
    one = dead.opens("a", "call")
    for session in "bcd":
        one = dead.opens(session, "call", child_of=one)
    dead.dies()
    repaired(next_)
    assert next_.repaired == ["r-c", "r-b", "r-a"]


def test_parents_that_name_each_other_are_each_looked_at_once(
    dead: Life, next_: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = dead.facts("a", "r-a"), dead.facts("b", "r-b")
    dead.opens("a", child_of=b)
    dead.opens("b", child_of=a)
    dead.dies()
    views = next_.world.store.views
    children, asked = views.children, list[SessionId]()

    def counted(session_id: SessionId, *, after: SessionId | None = None) -> Sequence[SessionId]:
        asked.extend([session_id] if after is None else [])
        return children(session_id, after=after)

    monkeypatch.setattr(views, "children", counted)
    repaired(next_)
    assert next_.repaired == ["r-b", "r-a"]
    assert asked == ["a", "b"]
