"""The T1+T2 pair: alone, in a large store, in a long run, in many runs at once. SPEC section 21, rows 1, 2 and 4."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import anyio

from safepoint.application.async_ledger import AsyncLedger
from safepoint.domain.events.tool import ToolCalled

from .bars import CONCURRENT_RUNS, CONCURRENT_RUNS_AGAINST_ONE, PAIR, PAIR_IN_LARGE_STORE, PAIR_IN_LONG_RUN
from .baselines import bare_pair, grouped_pairs_per_second
from .material import Place, Writing
from .measuring import (
    Measured,
    Spread,
    Taken,
    median,
    median_wall,
    microseconds,
    per_second,
    ratios,
    taken_by,
    wall_ratios,
)
from .workplace import Workplace

Calls: TypeAlias = list[list[ToolCalled]]

SLOW_DISK_SECONDS = 0.0005
"""From here on a bare commit is what a durable step costs, and only the CPU that we add is held against it."""
EXTRA_CPU_MAX = 0.5
TIME_MAX, EXTRA_SECONDS_MAX = 1.5, 150e-6


def pair_alone(work: Workplace) -> Iterator[Measured]:
    """Row 1: the pair against two bare commits of the same bytes."""
    pairs = work.sizes.pairs
    with Place(work.fresh("alone.sqlite")) as place:
        run = place.begin()
        states = run.bytes_of_a_pair()
        ours: list[Taken] = []
        bare: list[Taken] = []
        for _ in range(work.sizes.rounds):
            ours.append(each_pair(run, pairs))
            bare.append(bare_pairs(work.fresh("bare.sqlite"), states, pairs))
    yield pair_against_bare(ours, bare)


def pair_against_bare(ours: list[Taken], bare: list[Taken]) -> Measured:
    """Which of its three bounds the first bar has depends on what a bare commit takes here."""
    wall, commits = wall_ratios(ours, bare), median_wall(bare)
    extra_cpu = [mine.cpu - its.cpu for mine, its in zip(ours, bare, strict=True)]
    figures = {
        "pair": microseconds(median_wall(ours)),
        "two bare commits": microseconds(commits),
        "extra CPU": microseconds(median(extra_cpu)),
        "time ratio": f"{wall.median:.2f}",
    }
    if commits / 2 >= SLOW_DISK_SECONDS:
        figures["held against the time of the bare pair"] = "extra CPU"
        share = Spread.of([extra / its.wall for extra, its in zip(extra_cpu, bare, strict=True)])
        return Measured(PAIR, share, EXTRA_CPU_MAX, figures)
    return Measured(PAIR, wall, max(TIME_MAX, 1 + EXTRA_SECONDS_MAX / commits), figures)


def pair_in_large_places(work: Workplace) -> Iterator[Measured]:
    """Row 2: the pair in a store of 1,000,000 events, and in a run of 10,000, against one in an empty store."""
    crowded_path = work.large_store
    with (
        Place(work.fresh("empty.sqlite")) as empty,
        Place(crowded_path) as crowded,
        Place(work.fresh("long.sqlite")) as long,
    ):
        old = Writing(long, *long.kept_run(work.sizes.long_run))
        runs = {"empty": empty.begin(), "store": crowded.begin(), "run": old}
        taken: dict[str, list[float]] = {name: [] for name in runs}
        work.settle()
        for run in runs.values():
            each_pair(run, work.sizes.pairs // 10 + 1)  # reads what a first command reads
        for _ in range(work.sizes.rounds):
            for name, run in runs.items():
                taken[name].append(each_pair(run, work.sizes.pairs).wall)
    for bar, name in ((PAIR_IN_LARGE_STORE, "store"), (PAIR_IN_LONG_RUN, "run")):
        figures = {"there": microseconds(median(taken[name])), "empty": microseconds(median(taken["empty"]))}
        yield Measured(bar, ratios(taken[name], taken["empty"]), figures=figures)


def pairs_of_many_runs(work: Workplace) -> Iterator[Measured]:
    """Row 4: pairs per second of 64 concurrent runs against bare grouped inserts, and against one run alone.

    The runs are tasks of one event loop, as a host has them; runs in threads of their own are shown beside them.
    """
    tasks: list[float] = []
    threads: list[float] = []
    alone: list[float] = []
    bare: list[float] = []
    pairs = work.sizes.concurrent_pairs
    with Place(work.fresh("concurrent.sqlite")) as place:
        runs = [place.begin() for _ in range(work.sizes.concurrent_runs)]
        states = runs[0].bytes_of_a_pair()
        for _ in range(work.sizes.rounds):
            alone.append(1 / each_pair(runs[0], work.sizes.pairs).wall)
            tasks.append(_rate(runs, pairs, _in_tasks(place)))
            threads.append(_rate(runs, pairs, _in_threads))
            bare.append(grouped_pairs_per_second(work.fresh("grouped.sqlite"), *states, runs=len(runs), groups=pairs))
    figures = {
        "tasks": per_second(median(tasks)),
        "threads": per_second(median(threads)),
        "alone": per_second(median(alone)),
        "bare": per_second(median(bare)),
        "threads/bare": f"{ratios(threads, bare).median:.2f}",
        "threads/alone": f"{ratios(threads, alone).median:.1f}",
    }
    yield Measured(CONCURRENT_RUNS, ratios(tasks, bare), figures=figures)
    yield Measured(CONCURRENT_RUNS_AGAINST_ONE, ratios(tasks, alone))


def each_pair(run: Writing, pairs: int) -> Taken:
    """What one pair takes in a run: the median of the wall times, the mean of the CPU times."""
    calls = run.recorded(pairs)
    times = []
    cpu = time.process_time()
    for call in calls:
        start = time.perf_counter()
        run.write(call)
        times.append(time.perf_counter() - start)
    return Taken(median(times), (time.process_time() - cpu) / pairs)


def bare_pairs(path: Path, states: tuple[bytes, bytes], pairs: int) -> Taken:
    """The baseline, with its CPU: opening its database is measured apart and taken off."""
    opening = taken_by(lambda: bare_pair(path.with_suffix(".opened"), *states, rounds=1))
    wall: list[float] = []
    whole = taken_by(lambda: wall.append(bare_pair(path, *states, rounds=pairs + 1)))
    return Taken(wall[0], (whole.cpu - opening.cpu) / pairs)


def _rate(runs: list[Writing], pairs: int, together: Callable[[list[Writing], Calls], None]) -> float:
    calls = [run.recorded(pairs) for run in runs]
    return len(runs) * pairs / taken_by(lambda: together(runs, calls)).wall


def _in_threads(runs: list[Writing], calls: Calls) -> None:
    def write(run: Writing, its_calls: list[ToolCalled]) -> None:
        for call in its_calls:
            run.write(call)

    threads = [threading.Thread(target=write, args=each) for each in zip(runs, calls, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _in_tasks(place: Place) -> Callable[[list[Writing], Calls], None]:
    ledger = AsyncLedger(place.ledger)

    async def write(run: Writing, calls: list[ToolCalled]) -> None:
        writer = ledger.here()  # as whoever records a run does
        for call in calls:
            prepare = run.t1(call)
            await writer.execute(prepare)
            await writer.execute(run.t2(prepare.dispatch))

    async def all_of(runs: list[Writing], calls: Calls) -> None:
        async with anyio.create_task_group() as tasks:
            for each in zip(runs, calls, strict=True):
                tasks.start_soon(write, *each)

    return lambda runs, calls: anyio.run(all_of, runs, calls)
