"""The preview of repair: what repair would write, sealed in memory, the same at every look. SPEC section 13."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.model_provider import says
from safepoint.application.repair_preview import RepairPreview
from safepoint.application.states import load
from safepoint.domain.events.event import Event
from safepoint.domain.events.model import ModelStepCompleted
from safepoint.domain.events.run import ContinuationStarted, PrefixRef, RunEnded, RunStatus, StartKind
from safepoint.domain.events.tool import ToolDispatched, ToolResponded
from safepoint.domain.identifiers import RunId, SessionId, run_stream, session_stream
from safepoint.domain.planning.facts import Unreadable
from safepoint.domain.reasons import FailureClass, ParkReason
from safepoint.domain.recovery.verdict import Resolution
from safepoint.ports.failpoints import Failpoint

from .counted_tools import Counted
from .ledger_world import STORES
from .resuming import END, T2, Resuming, WatchedStore, failed, killed, written
from .wiring import SESSION, Process, World, go


@pytest.fixture(params=STORES)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    store = WatchedStore(request.param, tmp_path)
    yield store.world()
    store.close()


class Seen(NamedTuple):
    """A run as it is, or as it would be."""

    ref: PrefixRef
    events: list[Event]
    resolution: Resolution


def preview_of(world: World, session_id: SessionId = SESSION) -> Seen | None:
    with world.store.events.snapshot() as reader:
        session = load(reader, session_stream(session_id)).session()
        preview = RepairPreview(world.jobs)
        events, segment = preview.events(reader, session), preview.repaired(reader, session)
    if events is None or segment is None:
        assert events is None
        assert segment is None
        return None
    assert (segment.ref.high_water, segment.ref.digest) == (len(events), events[-1].digest)
    return Seen(segment.ref, [one.event for one in events], segment.resolution)


def repaired(world: World) -> Seen:
    """The head run after real repair."""
    process = Resuming(world)
    owned = process.ownership.own(SESSION)
    process.repair(owned)
    process.settle_jobs(owned)
    segment = process.segment(process.head())
    return Seen(segment.ref, process.events(process.head()), segment.resolution)


OWN = {"event_id", "occurred_at", "incarnation_id", "epoch"}


def facts(events: list[Event]) -> list[tuple[str, dict[str, object]]]:
    """Events without what is the writer's own."""
    return [(event.topic, event.model_dump(exclude=OWN)) for event in events]


@pytest.mark.parametrize(
    "at",
    [
        (ModelStepCompleted.topic,),
        (ToolDispatched.topic, ToolDispatched.topic, T2),
        (T2,),
        (END,),
    ],
)
def test_it_is_what_repair_then_writes(shared: World, at: tuple[str, ...]) -> None:
    act = Counted()
    killed(shared, [act.function], *at)
    before = written(shared)
    seen = preview_of(shared)
    assert seen == preview_of(shared)
    assert written(shared) == before
    assert seen is not None
    done = repaired(shared)
    assert facts(seen.events) == facts(done.events)
    assert [(v.call_id, v.status, v.reason) for v in seen.resolution.verdicts] == [
        (v.call_id, v.status, v.reason) for v in done.resolution.verdicts
    ]
    assert seen.ref.high_water == done.ref.high_water
    stored = before[run_stream(seen.ref.run_id)]
    assert seen.events[: len(stored)] == done.events[: len(stored)]


def test_what_it_adds_has_the_time_of_the_newest_event_and_ids_that_are_always_the_same() -> None:
    world, act = World(), Counted()
    killed(world, [act.function])
    first, second = preview_of(world), preview_of(world)
    assert first is not None
    assert second is not None
    ended = first.events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.occurred_at == first.events[-2].occurred_at
    assert (ended.failure_class, ended.recovered, ended.status) == (
        FailureClass.APP_RESTARTED,
        True,
        RunStatus.FAILED,
    )
    assert [event.event_id for event in first.events] == [event.event_id for event in second.events]
    assert len({event.event_id for event in first.events}) == len(first.events)
    assert first.ref == second.ref


def test_ids_of_two_runs_differ() -> None:
    made = set()
    for _ in range(2):
        world = World()
        killed(world, [])
        seen = preview_of(world)
        assert seen is not None
        made.add(seen.events[-1].event_id)
    assert len(made) == 2


def test_an_unstarted_claim_is_shown_as_the_run_that_repair_makes_of_it(shared: World) -> None:
    act = Counted()
    failed(shared, [act.function])
    process = Resuming(shared)
    process.is_killed(process.agent([], [act.function]), at=Failpoint.CLAIM_COMMITTED)
    seen = preview_of(shared)
    assert seen is not None
    started, ended = seen.events
    assert isinstance(started, ContinuationStarted)
    assert isinstance(ended, RunEnded)
    assert started.kind is StartKind.CLAIM_REPAIR
    assert ended.failure_class == FailureClass.CONTINUATION_ABANDONED_BEFORE_PROVIDER_DISPATCH
    assert facts(seen.events) == facts(repaired(shared).events)


def test_there_is_nothing_to_show_where_repair_has_nothing_to_do() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    assert preview_of(world) is None
    go(partial(Process(world).turn, "go", [says("done")], [act.function]))
    assert preview_of(world) is None


def test_there_is_nothing_to_show_where_repair_can_do_nothing() -> None:
    """The session's claim is damaged: repair quarantines it, and nobody may guess what it would have been."""
    world, act = World(), Counted()
    source = failed(world, [act.function])
    process = Resuming(world)
    process.is_killed(process.agent([], [act.function]), at=Failpoint.CLAIM_COMMITTED)
    tables = world.store._tables
    row = tables.streams[run_stream(source)][-1]
    tables.records[row] = tables.records[row]._replace(state=b"{}")
    assert preview_of(world) is None


def test_a_question_stays_open_and_a_call_without_an_answer_stays_without() -> None:
    world, act = World(), Counted()
    killed(world, [act.function], T2)
    seen = preview_of(world)
    assert seen is not None
    assert [event for event in seen.events if isinstance(event, ToolResponded)] == []
    assert not seen.resolution.verdicts[0].is_settled


def test_ids_for_a_continuation_are_made_of_the_boundary_alone() -> None:
    world, act = World(), Counted()
    run_id = failed(world, [act.function])
    preview = RepairPreview(MemoryJobs())
    segment = Process(world).segment(run_id)
    ids = preview.ids(SESSION, [segment])
    assert ids == preview.ids(SessionId("another"), [segment])
    assert len(set(ids)) == len(ids)
    unreadable = Unreadable(ParkReason.STORE_UNAVAILABLE, RunId("r"))
    assert preview.ids(SESSION, [unreadable]) == preview.ids(SESSION, ()) != ids
    assert preview.ids(SESSION, ()) != preview.ids(SessionId("another"), ())
