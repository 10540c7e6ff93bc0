"""Repairing 10,000 interrupted runs when a program starts. SPEC section 21, row 7."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.domain.events.event import Event
from safepoint.ports.event_store import Commit, CommitAnswer, EventReader, EventStore, OwnerGuard

from .bars import REPAIR_AT_START
from .baselines import batched_writes
from .facts import Facts, calls_of
from .material import Place
from .measuring import Measured, Taken, added, cpu_ratio, in_seconds, median_wall, microseconds, wall_ratios
from .stored import baseline_of, newest_row, states_since, validator
from .workplace import Workplace

SESSIONS_PER_TRANSACTION = 100


def repair_at_start(work: Workplace) -> Iterator[Measured]:
    """Row 7: repair against validating and hashing what was interrupted, and bare writes of what repair wrote.

    Each round adds as many interrupted sessions to the same store.
    """
    path, validate = work.fresh("interrupted.sqlite"), validator()
    ours: list[Taken] = []
    reading: list[Taken] = []
    writing: list[Taken] = []
    for _ in range(work.sizes.slow_rounds):
        work.tell(f"interrupting {work.sizes.interrupted_runs:,} runs")
        before = _interrupt(path, work.sizes.interrupted_runs)
        states = list(states_since(path, before))
        work.settle()
        taken, written = _repaired(path, work.sizes.interrupted_runs)
        ours.append(taken)
        reading.append(baseline_of(states, validate))
        cpu = time.process_time()
        writing.append(Taken(batched_writes(work.fresh("batches.sqlite"), written), time.process_time() - cpu))
    figures = {
        "events": f"{len(states):,}",
        "written": f"{sum(map(len, written)):,} events in {len(written):,} transactions",
        "repair": in_seconds(median_wall(ours)),
        "a run": microseconds(median_wall(ours) / work.sizes.interrupted_runs),
        "baseline": in_seconds(median_wall(reading)),
        "bare writes": in_seconds(median_wall(writing)),
        "ratio of CPU": cpu_ratio(ours, added(reading, writing)),
    }
    yield Measured(REPAIR_AT_START, wall_ratios(ours, added(reading, writing)), figures=figures)


class Watched(EventStore):
    """An event store that remembers what it was given, transaction by transaction."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self.appended: list[Sequence[Commit]] = []

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        """Keep, and remember."""
        self.appended.append(commits)
        return self._store.append(commits)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        """As the store."""
        return self._store.snapshot()

    def close(self) -> None:
        """As the store."""
        self._store.close()


def _repaired(path: Path, runs: int) -> tuple[Taken, list[list[tuple[str, int, str, bytes]]]]:
    """What repair took, opening the store included, and the rows of each transaction that it wrote."""
    wall, cpu = time.perf_counter(), time.process_time()
    runtime = OpenedStore(Settings(path))
    watched = Watched(runtime.parts.store().events)
    runtime.parts.events.override(watched)
    with runtime:
        report = runtime.parts.repair_everything()()
        taken = Taken(time.perf_counter() - wall, time.process_time() - cpu)
    assert report.runs_closed == runs, report
    return taken, [
        [
            (sealed.stream, sealed.sequence, sealed.event.topic, sealed.state)
            for commit in commits
            for sealed in commit.events
        ]
        for commits in watched.appended
    ]


def _interrupt(path: Path, runs: int) -> int:
    """Let a process die in the middle of so many runs; the newest row before that."""
    with Place(path) as place:
        before = newest_row(path)
        rest = place.own_many(runs)
        while rest:
            some, rest = rest[:SESSIONS_PER_TRANSACTION], rest[SESSIONS_PER_TRANSACTION:]
            place.keep_together([(guard, _cut_off(place.facts, guard)) for guard in some])
    return before


def _cut_off(facts: Facts, guard: OwnerGuard) -> list[Event]:
    """A run with a step of four calls: two answered, one dispatched without an answer, one not begun."""
    identity = facts.spines.identity(guard.session_id)
    step = facts.step(identity, 4)
    events: list[Event] = [*facts.opening(guard, identity), *step]
    for number, call in enumerate(calls_of(step)[:3]):
        dispatch = facts.dispatched(guard, identity, call)
        events.append(dispatch)
        if number < 2:
            events.append(facts.responded(identity, dispatch))
    return events
