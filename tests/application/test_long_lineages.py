"""What long chains and many claims cost, counted and not timed: each ancestor is read once, other claims never.

SPEC sections 13 and 14.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from safepoint.adapters.memory.model_provider import calls
from safepoint.adapters.sqlite.store import SqliteStore
from safepoint.application.ledger import Ledger
from safepoint.application.plan_resume import PlanRequest, PlanResume
from safepoint.application.repair_preview import RepairPreview
from safepoint.domain.boundary import SEGMENTS_MAX
from safepoint.domain.commands import AnyCommand, ClaimContinuation
from safepoint.domain.identifiers import EventId, RunId, run_stream
from safepoint.domain.planning.outcome import Plan
from safepoint.domain.reasons import ParkReason
from safepoint.domain.sealing import StoredRecord
from safepoint.ports.event_store import Commit, CommitAnswer, EventReader, EventStore, Location, Standing

from ..domain.facts import Facts, prefix
from .counted_tools import Counted
from .ledger_world import STORES
from .ledger_world import World as LedgerWorld
from .resuming import Resuming, admitted, codes, continuing, failed
from .wiring import SESSION, World


class CountingEvents(EventStore):
    """Counts what is read of each stream.

    Attributes:
        rows: how many rows of each stream were read.
        looks: how many times anything was asked.
    """

    def __init__(self, inner: EventStore) -> None:
        self.rows: Counter[str] = Counter()
        self.looks = 0
        self._inner = inner

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        return self._inner.append(commits)

    @contextmanager
    def _look(self) -> Iterator[EventReader]:
        with self._inner.snapshot() as reader:
            yield _CountingReader(reader, self)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        return self._look()

    def close(self) -> None:
        self._inner.close()


class _CountingReader(EventReader):
    def __init__(self, inner: EventReader, counts: CountingEvents) -> None:
        self._inner = inner
        self._counts = counts

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        rows = self._inner.read(stream, after=after, limit=limit)
        self._counts.looks += 1
        self._counts.rows[stream] += len(rows)
        return rows

    def last(self, stream: str) -> StoredRecord | None:
        row = self._inner.last(stream)
        self._counts.looks += 1
        self._counts.rows[stream] += row is not None
        return row

    def locate(self, event_id: EventId) -> Location | None:
        self._counts.looks += 1
        return self._inner.locate(event_id)

    def standing(self, run_id: RunId) -> Standing:
        self._counts.looks += 1
        return self._inner.standing(run_id)


# ---- chains --------------------------------------------------------------------------------------------------------


class Chain:
    """A turn and its continuations, each of which did one thing and then lost its provider."""

    def __init__(self) -> None:
        self.world = World()
        self.tool = Counted()
        failed(self.world, [self.tool.function], calls(("act", {"n": 0})))
        self.process = Resuming(self.world)
        self.runs = 1

    def grow(self, runs: int) -> None:
        """Continue it until it has so many runs."""
        while self.runs < runs:
            agent = self.process.agent([calls(("act", {"n": self.runs}))], [self.tool.function])
            self.process.continues(agent)
            self.runs += 1

    def plan(self) -> tuple[Plan, CountingEvents]:
        """Look, and count what is read for it."""
        counts = CountingEvents(self.process.events_store)
        preview = RepairPreview(self.world.jobs)
        process = self.process
        look = PlanResume(counts, process.ownership, process.over, self.world.workspaces, preview)
        return look(SESSION, process.agent([], [self.tool.function]), PlanRequest()).plan, counts


def test_a_chain_of_64_runs_plans_in_reads_that_grow_with_its_events_reads_each_run_once_and_is_the_longest() -> None:
    chain = Chain()
    looks = {}
    for runs in (4, 16, SEGMENTS_MAX):
        chain.grow(runs)
        plan, counts = chain.plan()
        continuing(plan)
        looks[runs] = counts.looks
        for run_id in admitted(chain.process):
            kept = len(chain.process.events(run_id))
            assert kept <= counts.rows[run_stream(run_id)] <= kept + 1, "read once, and asked once whether it exists"
    assert looks[16] - looks[4] == 12 * (looks[SEGMENTS_MAX] - looks[16]) / 48, f"not linear: {looks}"

    chain.grow(SEGMENTS_MAX + 1)
    plan, _ = chain.plan()
    assert codes(plan) == (ParkReason.RUNTIME_LINEAGE_DEPTH_EXCEEDED,)
    parked = chain.process.parks(chain.process.agent([calls(("act", {"n": 99}))], [chain.tool.function]))
    assert parked.codes == (ParkReason.RUNTIME_LINEAGE_DEPTH_EXCEEDED,)
    assert chain.tool.calls == [*range(SEGMENTS_MAX + 1)]


# ---- claims --------------------------------------------------------------------------------------------------------


def boundary_of(world: LedgerWorld, session: str) -> tuple[Facts, ClaimContinuation]:
    """An interrupted run of a session of its own, and the claim of it."""
    run, target = f"run-{session}", Facts(f"target-{session}", session=session)
    r = world.facts(run, session=session)
    target.epoch = r.epoch
    world.ledger.execute(r.open_run())
    world.ledger.execute(r.end())
    ref = prefix(r, [one.event for one in world.stream(f"run:{run}")])
    return r, r.claim(target, [ref])


def claimed_sessions(world: LedgerWorld, count: int) -> None:
    """So many sessions whose run was claimed; in groups, since they are many."""
    for first in range(0, count, 50):
        sessions = [f"other-{number}" for number in range(first, min(first + 50, count))]
        facts = [world.facts(f"run-{session}", session=session) for session in sessions]
        _all(world.ledger, [r.open_run() for r in facts])
        _all(world.ledger, [r.end() for r in facts])
        claims: list[AnyCommand] = []
        for session, r in zip(sessions, facts, strict=True):
            target = Facts(f"target-{session}", session=session)
            target.epoch = r.epoch
            claims.append(r.claim(target, [prefix(r, [one.event for one in world.stream(f"run:run-{session}")])]))
        _all(world.ledger, claims)


def _all(ledger: Ledger, commands: Sequence[AnyCommand]) -> None:
    for answer in ledger.execute_all(commands):
        if isinstance(answer, Exception):
            raise answer


def cost_of_a_claim(kind: str, folder: Path, others: int) -> tuple[int, int, int, int]:
    """What one claim asks of a store that holds others: rows, looks, statements, and steps of SQLite's machine."""
    folder.mkdir()
    world = LedgerWorld(kind, folder)
    claimed_sessions(world, others)
    boundary_of(world, "warm")  # what a first command reads once
    _, claim = boundary_of(world, "mine")
    counts = CountingEvents(world.store.events)
    ledger = Ledger(counts, world.owners)
    statements, steps = _asked(world.store, lambda: ledger.execute(claim)) if kind == "sqlite" else (0, 0)
    if kind == "memory":
        ledger.execute(claim)
    assert not [stream for stream in counts.rows if "other" in stream]
    world.close()
    return counts.rows.total(), counts.looks, statements, steps


def _asked(store: object, work: object) -> tuple[int, int]:
    assert isinstance(store, SqliteStore)
    assert callable(work)
    writer = store.events._writer
    assert writer is not None
    connection, told, steps = writer._connection, list[str](), [0]

    def step() -> None:
        steps[0] += 1

    connection.set_trace_callback(told.append)
    connection.set_progress_handler(step, 1)
    try:
        work()
    finally:
        connection.set_trace_callback(None)
        connection.set_progress_handler(None, 1)
    return len(told), steps[0]


@pytest.mark.parametrize("kind", STORES)
def test_a_claim_reads_and_does_the_same_beside_none_and_beside_a_thousand_others(kind: str, tmp_path: Path) -> None:
    alone = cost_of_a_claim(kind, tmp_path / "none", 0)
    among = cost_of_a_claim(kind, tmp_path / "many", 1_000 if kind == "memory" else 200)

    assert among[:3] == alone[:3]
    assert abs(among[3] - alone[3]) <= alone[3] * 0.02, "the steps of SQLite's machine grow with other claims"


@pytest.mark.soak
@pytest.mark.parametrize("kind", STORES)
def test_a_claim_reads_and_does_the_same_beside_a_hundred_thousand_others(kind: str, tmp_path: Path) -> None:
    alone = cost_of_a_claim(kind, tmp_path / "none", 0)
    among = cost_of_a_claim(kind, tmp_path / "many", 100_000)

    assert among[:3] == alone[:3]
    assert abs(among[3] - alone[3]) <= alone[3] * 0.02
