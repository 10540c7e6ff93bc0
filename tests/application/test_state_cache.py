"""A cached state is a shortcut: bounded, brought up to the store, and forgotten with its session. SPEC section 7."""

from __future__ import annotations

from safepoint.application.state_cache import StateCache
from safepoint.application.states import NO_RUN, NO_SESSION, Read, empty, load, readable
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.ports.event_store import EventReader

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
    assert cache.peek("run:r") is first
    assert (first.sequence, first.run().sequence) == (2, 2)
    assert world.events.snapshots == before + 1


def test_a_stream_without_events_is_looked_at_every_time(world: World) -> None:
    cache, before = StateCache(10), world.events.snapshots
    assert cache.get("run:r", reading(world)) == NO_RUN
    assert cache.get("session:s", reading(world)) == NO_SESSION
    assert (cache.peek("run:r"), cache.peek("session:s")) == (None, None)
    world.opened()
    assert cache.get("run:r", reading(world)).sequence == 2
    assert world.events.snapshots == before + 3 + 1  # whoever opened the run read both in one view


def test_the_least_recently_used_goes_first(world: World) -> None:
    for number in range(3):
        world.opened(f"r{number}", session=f"s{number}")
    cache = StateCache(2)
    for name in ("run:r0", "run:r1", "run:r0", "run:r2"):
        cache.get(name, reading(world))
    assert [cache.peek(f"run:r{number}") is None for number in range(3)] == [False, True, False]


def test_an_outdated_state_is_read_on_from_where_it_ends(world: World) -> None:
    r = world.opened()
    cache = StateCache(10)
    before = cache.get("run:r", reading(world))
    world.ledger.execute(r.append(r.cancelled()))
    assert cache.get("run:r", reading(world)) is before
    cache.outdate(["run:r", "run:unknown"])
    assert cache.peek("run:r") is None
    read_after: list[int] = []

    def read(look: object) -> None:
        with world.events.snapshot() as reader:
            look(Watched(reader, read_after))  # type: ignore[operator]

    assert cache.get("run:r", read).sequence == 3
    assert read_after == [2]


class Watched:
    """A reader that tells from where it was read."""

    def __init__(self, reader: EventReader, read_after: list[int]) -> None:
        self._reader, self._read_after = reader, read_after

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> object:
        self._read_after.append(after)
        return self._reader.read(stream, after=after, limit=limit)


def test_refreshing_says_whether_anything_was_behind(world: World) -> None:
    r = world.opened()
    cache = StateCache(10)
    cache.get("run:r", reading(world))
    with world.events.snapshot() as reader:
        assert not cache.refresh(["run:r", "session:s"], reader)
    world.ledger.execute(r.append(r.cancelled()))
    with world.events.snapshot() as reader:
        assert cache.refresh(["run:r"], reader)
        assert not cache.refresh(["run:r"], reader)
    known = cache.peek("run:r")
    assert known is not None
    assert known.sequence == 3


def test_forgetting_a_session_forgets_its_runs_and_no_others(world: World) -> None:
    world.opened("r", session="s")
    world.opened("q", session="t")
    cache = StateCache(10)
    for name in ("session:s", "run:r", "session:t", "run:q"):
        cache.get(name, reading(world))
    cache.forget(SessionId("s"))
    cache.forget(SessionId("unknown"))
    assert [cache.peek(name) is None for name in ("session:s", "run:r", "session:t", "run:q")] == [
        True,
        True,
        False,
        False,
    ]
    cache.clear()
    assert cache.peek("run:q") is None
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
    assert empty("run:x") is NO_RUN


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
