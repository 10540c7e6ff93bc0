"""A cached state is a shortcut: bounded, brought up to the store, and forgotten with its session. SPEC section 7."""

from __future__ import annotations

from safepoint.application.state_cache import StateCache
from safepoint.application.states import Read, load, readable
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.run.state import Run

from .ledger_world import World
from .test_ledger import damaged


def reading(world: World) -> Read:
    def read(look: object) -> None:
        with world.events.snapshot() as reader:
            look(reader)  # type: ignore[operator]

    return read


def test_a_state_is_read_once_and_then_known(world: World) -> None:
    world.opened()
    cache, before = StateCache(10), world.events.snapshots
    first = cache.get("run:r", reading(world))
    assert cache.get("run:r", reading(world)) is first
    assert cache.shown("run:r") is not None
    assert (first.sequence, first.run().sequence) == (2, 2)
    assert world.events.snapshots == before + 1


def test_a_stream_without_events_is_looked_at_every_time(world: World) -> None:
    cache, before = StateCache(10), world.events.snapshots
    assert cache.get("run:r", reading(world)).run().opening is None
    assert cache.get("session:s", reading(world)).session().opened is None
    assert (cache.shown("run:r"), cache.shown("session:s")) == (None, None)
    world.opened()
    assert cache.get("run:r", reading(world)).sequence == 2
    assert world.events.snapshots == before + 3 + 1  # whoever opened the run read both in one view


def test_the_least_recently_used_goes_first(world: World) -> None:
    for number in range(3):
        world.opened(f"r{number}", session=f"s{number}")
    cache = StateCache(2)
    for name in ("run:r0", "run:r1", "run:r0", "run:r2"):
        cache.get(name, reading(world))
        cache.trim()
    assert [cache.shown(f"run:r{number}") is None for number in range(3)] == [False, True, False]


def test_nothing_is_forgotten_while_a_group_is_written(world: World) -> None:
    for number in range(3):
        world.opened(f"r{number}", session=f"s{number}")
    cache = StateCache(1)
    heads = [cache.get(f"run:r{number}", reading(world)) for number in range(3)]
    assert [cache.get(f"run:r{number}", reading(world)) for number in range(3)] == heads


def test_what_moves_is_shown_to_nobody_and_what_is_shown_moves_no_more(world: World) -> None:
    r = world.opened()
    cache = StateCache(10)
    head = cache.get("run:r", reading(world))
    before = cache.shown("run:r")
    assert isinstance(before, Run)
    cache.hold(head)
    assert cache.shown("run:r") is None
    world.ledger.execute(r.append(r.cancelled()))
    with world.events.snapshot() as reader:
        assert cache.refresh([("run:r", 2)], reader)
    after = cache.shown("run:r")
    assert isinstance(after, Run)
    assert (before.sequence, after.sequence, head.run().sequence) == (2, 3, 3)
    assert (before.cancel_requested is None, after.cancel_requested is None) == (True, False)


def test_refreshing_says_whether_anything_was_behind(world: World) -> None:
    r = world.opened()
    cache = StateCache(10)
    cache.get("run:r", reading(world))
    with world.events.snapshot() as reader:
        assert not cache.refresh([("run:r", 2), ("session:s", 2)], reader)
    world.ledger.execute(r.append(r.cancelled()))
    with world.events.snapshot() as reader:
        assert cache.refresh([("run:r", 2)], reader)
        assert not cache.refresh([("run:r", 3)], reader)
    assert cache.get("run:r", reading(world)).sequence == 3


def test_of_what_is_not_known_it_is_said_whether_it_is_where_it_was_taken_to_be(world: World) -> None:
    world.opened()
    cache = StateCache(10)
    with world.events.snapshot() as reader:
        assert cache.refresh([("run:r", 1)], reader)
        cache.drop("run:r")
        assert not cache.refresh([("run:r", 2), ("session:s", 2)], reader)
        assert cache.refresh([("run:x", 0), ("run:y", 1)], reader)


def test_forgetting_a_session_forgets_its_runs_and_no_others(world: World) -> None:
    world.opened("r", session="s")
    world.opened("q", session="t")
    cache = StateCache(10)
    for name in ("session:s", "run:r", "session:t", "run:q"):
        cache.get(name, reading(world))
    cache.forget(SessionId("s"))
    cache.forget(SessionId("unknown"))
    assert [cache.shown(name) is None for name in ("session:s", "run:r", "session:t", "run:q")] == [
        True,
        True,
        False,
        False,
    ]
    cache.clear()
    assert cache.shown("run:q") is None
    cache.forget(SessionId("t"))


def test_loading_goes_on_from_a_known_head_page_by_page(world: World) -> None:
    r = world.opened()
    facts = [r.user(str(number), steering=True) for number in range(2_100)]
    for start in range(0, 2_100, 700):
        world.ledger.execute(r.append(*facts[start : start + 700]))
    with world.events.snapshot() as reader:
        whole = load(reader, "run:r")
        again = load(reader, "run:r", whole)
    assert whole.sequence == 2_102
    assert again is whole


def test_what_can_be_read_of_a_run_and_what_is_wrong_behind_it(world: World) -> None:
    world.opened("q", session="t")
    damaged(world, "a")
    with world.events.snapshot() as reader:
        sound = readable(reader, RunId("q"))
        run, damage, suspected = readable(reader, RunId("r"))
    assert (sound.run.sequence, sound.damage, sound.suspected) == (2, None, sound.run)
    assert suspected is run  # its chain verifies to the end
    assert run.sequence == 2
    assert damage is not None
    assert "orphan_response" in damage
