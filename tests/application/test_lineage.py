"""Runs and the chains that they form, read and verified: a turn's lineage, and the turns before it. SPEC 12 and 14."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.tables import Failure
from safepoint.application.lineage import (
    LineageBroken,
    read_ancestors,
    read_context,
    read_earlier,
    read_lineage,
    read_segment,
    reading_of,
    root_of,
)
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.run import Context, PrefixRef, RunStatus
from safepoint.domain.identifiers import EventId, RunId
from safepoint.domain.planning.facts import SegmentFacts, Unreadable
from safepoint.domain.reasons import ParkReason
from safepoint.domain.sealing import StoredRecord
from safepoint.ports.event_store import EventReader, Location, Standing

from ..domain.facts import Facts, prefix
from .ledger_world import World


@contextmanager
def reader_of(world: World) -> Iterator[EventReader]:
    with world.events.snapshot() as reader:
        yield reader


def interrupted(world: World, run: str, *calls: str) -> Facts:
    """An ordinary run that was killed after its calls were answered."""
    r = world.opened(run, *calls)
    for call in calls:
        world.ledger.execute(r.prepare(r.dispatch(call)))
        world.ledger.execute(r.commit(r.outcome(call)))
    world.ledger.execute(r.end())
    return r


def boundary(world: World, r: Facts) -> PrefixRef:
    return prefix(r, [one.event for one in world.stream(f"run:{r.run_id}") if one.event.topic != "run.claimed.v1"])


def continued(world: World, lineage: list[Facts], run: str) -> Facts:
    """A run that continues the last of a lineage, and was killed as well."""
    source, target = lineage[-1], Facts(run)
    claim = source.claim(target, [boundary(world, one) for one in lineage])
    world.ledger.execute(claim)
    world.own(target)
    world.ledger.execute(target.start(claim.claimed))
    world.ledger.execute(target.record(target.step(text=f"answer of {run}")))
    world.ledger.execute(target.end())
    return target


def next_turn(world: World, before: Facts, run: str, **context: object) -> Facts:
    r = world.facts(run)
    given = Context.model_validate({"previous": boundary(world, before), **context})
    world.ledger.execute(r.open_run(opened=r.opened(context=given)))
    world.ledger.execute(r.record(r.step(text=f"answer of {run}")))
    world.ledger.execute(r.end(RunStatus.COMPLETED))
    return r


def segment(reader: EventReader, run: str) -> SegmentFacts:
    found = read_segment(reader, RunId(run))
    assert found is not None
    return found


def test_a_run_is_read_to_its_newest_event_and_a_claim_is_beyond_the_boundary(world: World) -> None:
    r = interrupted(world, "r1", "a")
    before = boundary(world, r)
    continued(world, [r], "r2")
    with reader_of(world) as reader:
        found = segment(reader, "r1")
    assert found.ref == before
    assert found.claimed is not None
    assert found.claimed.target.run_id == "r2"
    assert len(found.survey.terminals) == 1
    assert not found.foreign


@pytest.mark.parametrize("high_water", [1, 2, 5])
def test_a_prefix_is_read_and_judged_as_if_nothing_followed(world: World, high_water: int) -> None:
    interrupted(world, "r1", "a")
    with reader_of(world) as reader:
        found = read_segment(reader, RunId("r1"), high_water)
    assert found is not None
    assert (found.ref.high_water, found.survey.length) == (high_water, high_water)
    assert found.ref.digest == world.stream("run:r1")[high_water - 1].digest
    assert found.claimed is None
    statuses = [verdict.status.value for verdict in found.resolution.verdicts]
    assert statuses == {1: [], 2: [], 5: ["indeterminate"]}[high_water]


def test_a_boundary_beyond_the_newest_event_names_what_is_there(world: World) -> None:
    r = interrupted(world, "r1")
    with reader_of(world) as reader:
        found = read_segment(reader, RunId("r1"), 99)
    assert found is not None
    assert found.ref == boundary(world, r)


def test_a_lineage_is_read_from_the_oldest_run_to_the_newest_each_once(world: World) -> None:
    lineage = [interrupted(world, "r1", "a")]
    for run in ("r2", "r3", "r4"):
        lineage.append(continued(world, lineage, run))
    with reader_of(world) as reader:
        head = segment(reader, "r4")
        counted = Counted(reader)
        chain = read_lineage(counted, head)
    assert [one.ref.run_id for one in chain] == ["r1", "r2", "r3", "r4"]
    assert [one.ref for one in chain] == [boundary(world, one) for one in lineage]
    assert counted.streams == ["run:r3", "run:r2", "run:r1"]
    assert root_of(chain).run_id == "r1"


class Counted(EventReader):
    """Tells which streams were read; looking can be made to fail."""

    def __init__(self, reader: EventReader, error: StoreUnavailable | None = None) -> None:
        self._reader = reader
        self._error = error
        self.streams: list[str] = []

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        if self._error is not None:
            raise self._error
        if after == 0:
            self.streams.append(stream)
        return self._reader.read(stream, after=after, limit=limit)

    def last(self, stream: str) -> StoredRecord | None:
        return self._reader.last(stream)

    def locate(self, event_id: EventId) -> Location | None:
        return self._reader.locate(event_id)

    def standing(self, run_id: RunId) -> Standing:
        return self._reader.standing(run_id)


def test_an_ordinary_run_is_its_own_lineage(world: World) -> None:
    interrupted(world, "r1")
    with reader_of(world) as reader:
        head = segment(reader, "r1")
        assert read_lineage(reader, head) == (head,)
        assert read_ancestors(reader, head) == (head,)


def lose(world: World, run: str) -> None:
    """A run's stream is gone, as after somebody deleted it."""
    assert isinstance(world.store, MemoryStore)
    del world.store._tables.streams[f"run:{run}"]


def test_a_missing_ancestor_is_named(memory: World) -> None:
    lineage = [interrupted(memory, "r1")]
    lineage.append(continued(memory, lineage, "r2"))
    continued(memory, lineage, "r3")
    lose(memory, "r1")
    with reader_of(memory) as reader:
        head = segment(reader, "r3")
        first, *rest = read_ancestors(reader, head)
        assert isinstance(first, Unreadable)
        assert (first.code, first.run_id) == (ParkReason.RUNTIME_LINEAGE_MISSING, "r1")
        assert [one.ref.run_id for one in rest if isinstance(one, SegmentFacts)] == ["r2", "r3"]
        with pytest.raises(LineageBroken) as broken:
            read_lineage(reader, head)
    assert broken.value.run_id == "r1"


def test_an_ancestor_that_does_not_verify_is_named_with_the_place(memory: World) -> None:
    lineage = [interrupted(memory, "r1")]
    continued(memory, lineage, "r2")
    assert isinstance(memory.store, MemoryStore)
    tables = memory.store._tables
    row = tables.streams["run:r1"][1]
    tables.records[row] = tables.records[row]._replace(state=tables.records[row].state.replace(b"do it", b"do no"))
    with reader_of(memory) as reader:
        first, _ = read_ancestors(reader, segment(reader, "r2"))
        assert isinstance(first, Unreadable)
        assert (first.code, first.run_id, first.sequence) == (ParkReason.RUNTIME_LEDGER_UNREADABLE, "r1", 3)
        with pytest.raises(LineageBroken):
            read_lineage(reader, segment(reader, "r2"))


def test_could_not_look_at_an_ancestor_is_not_that_it_is_missing(memory: World) -> None:
    lineage = [interrupted(memory, "r1")]
    continued(memory, lineage, "r2")
    with reader_of(memory) as reader:
        head = segment(reader, "r2")
        first, _ = read_ancestors(Counted(reader, StoreUnavailable("the disk is gone")), head)
    assert isinstance(first, Unreadable)
    assert first.code is ParkReason.STORE_UNAVAILABLE


def test_nothing_is_where_no_run_is(world: World) -> None:
    with reader_of(world) as reader:
        assert read_segment(reader, RunId("x")) is None
        seen = reading_of(reader, RunId("x"))
    assert isinstance(seen, Unreadable)
    assert seen.code is ParkReason.RUNTIME_LEDGER_EMPTY


# ---- the turns before ------------------------------------------------------------------------------------------------


def three_turns(world: World) -> list[Facts]:
    first = interrupted(world, "r1", "a")
    resumed = continued(world, [first], "r1b")
    second = next_turn(world, resumed, "r2")
    return [first, resumed, second, next_turn(world, second, "r3")]


def test_a_context_is_the_turns_that_the_recorded_contexts_reach(world: World) -> None:
    three_turns(world)
    with reader_of(world) as reader:
        history = read_context(reader, segment(reader, "r3"))
        earlier = read_earlier(reader, read_lineage(reader, segment(reader, "r3")))
    texts = [item.text for one in history.segments for item in one.items if item.kind == "text"]
    assert texts == ["answer of r1b", "answer of r2", "answer of r3"]
    texts = [item.text for one in earlier.segments for item in one.items if item.kind == "text"]
    assert texts == ["answer of r1b", "answer of r2"]
    assert not history.blocked


def test_the_first_turn_has_none_before_it(world: World) -> None:
    interrupted(world, "r1")
    with reader_of(world) as reader:
        assert read_earlier(reader, read_lineage(reader, segment(reader, "r1"))).segments == ()


def test_a_turn_is_left_out_at_a_persons_request_and_stays_out_where_that_was_recorded(world: World) -> None:
    first = interrupted(world, "r1", "a")
    second = next_turn(world, first, "r2")
    third = next_turn(world, second, "r3", left_out=["r2"])
    next_turn(world, third, "r4")
    with reader_of(world) as reader:
        asked = read_context(reader, segment(reader, "r2"), frozenset({RunId("r1")}))
        recorded = read_context(reader, segment(reader, "r4"))
    assert [item.text for one in asked.segments for item in one.items if item.kind == "text"] == ["answer of r2"]
    texts = [item.text for one in recorded.segments for item in one.items if item.kind == "text"]
    assert texts == ["answer of r3", "answer of r4"]


def test_an_earlier_turn_that_is_not_what_was_recorded_breaks_the_lineage(memory: World) -> None:
    three_turns(memory)
    lose(memory, "r2")
    with reader_of(memory) as reader, pytest.raises(LineageBroken) as broken:
        read_context(reader, segment(reader, "r3"))
    assert broken.value.run_id == "r2"


def test_could_not_look_is_raised_as_such(memory: World) -> None:
    interrupted(memory, "r1")
    assert isinstance(memory.store, MemoryStore)
    memory.store.fail_next(Failure.UNREADABLE)
    with pytest.raises(StoreUnavailable), reader_of(memory) as reader:
        segment(reader, "r1")
