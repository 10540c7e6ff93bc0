"""Drawn orders of the same deeds, in real processes over one SQLite store, some of which are really killed."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.domain.events.event import Event
from safepoint.domain.events.run import RunClaimed, RunEnded
from safepoint.domain.events.session import RunAdmitted, RunKind
from safepoint.domain.events.tool import Effect, ToolAttested, ToolDispatched, ToolResponded
from safepoint.domain.identifiers import run_stream, session_stream
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.domain.unsealing import unseal
from safepoint.ports.event_store import EventReader

from .real_process import EFFECTS, REQUESTS, TOLD, lines_of
from .real_schedule import Forks, Schedule
from .world import SESSION

SEED_VARIABLE = "SAFEPOINT_EXPLORATION_SEED"
ORDERS, ORDERS_OF_A_SOAK = 24, 2_000
TOOLS = ("pay", "send")
CASTS: Sequence[dict[str, list[str]]] = (
    {"a": ["turn"], "b": ["take over by force", "resume"]},
    {"a": ["turn"], "b": ["take over by ending", "resume"], "c": ["resume"]},
    {"a": ["turn"], "b": ["take over by force", "settle", "resume"]},
    {"a": ["turn", "new turn"], "b": ["resume", "settle", "resume"]},
)
UNEXPECTED = {"duplicate_event_id", "retry_conflict", "store_damaged", "store_unavailable"}


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as server:
        yield server


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get(SEED_VARIABLE, random.SystemRandom().randrange(2**32)))


def check_order(forks: Forks, folder: Path, seed: int, number: int) -> list[str]:
    """Draw one and check it; answers what the processes were told."""
    (folder / "workspace").mkdir(parents=True)
    schedule = Schedule(forks, folder, random.Random(f"{seed} order {number}"))
    schedule(CASTS[number % len(CASTS)], TOOLS)
    order = "\n".join([f"{SEED_VARIABLE}={seed}, order {number}", *schedule.steps])
    told = [one for file in folder.glob(f"*.{TOLD}") for one in json.loads(file.read_text())]
    assert UNEXPECTED.isdisjoint(told), f"{told}\n{order}"
    assert set(schedule.statuses.values()) <= {0, -9, -15}, f"{schedule.statuses}\n{order}"
    check_record(folder, order)
    return [*told, *("killed" for status in schedule.statuses.values() if status == -9)]


def check_record(folder: Path, order: str) -> None:
    """The rules R6 to R12, of the record, the effects and the requests as they stand in the end."""
    with OpenedStore(Settings(store=folder / "store.sqlite")) as runtime:
        owned = runtime.parts.ownership().own(SESSION)
        runtime.parts.repair_session()(owned)
        runtime.parts.ownership().release(owned)
        store = runtime.parts.store()
        assert runtime.parts.verify_store()().sound, order
        with store.events.snapshot() as reader:
            session = events_of(reader, session_stream(SESSION))
            admitted = [one for one in session if isinstance(one, RunAdmitted)]
            runs = {one.run_id: events_of(reader, run_stream(one.run_id)) for one in admitted}
    facts = [fact for run in runs.values() for fact in run]
    for run_id, run in runs.items():
        assert sum(isinstance(fact, RunEnded) for fact in run) == 1, f"{run_id}\n{order}"
    check_effects(folder, facts, order)
    claims = [fact for fact in facts if isinstance(fact, RunClaimed)]
    assert len({claim.boundary_digest for claim in claims}) == len(claims), f"a boundary was claimed twice\n{order}"
    targets = [claim.target.run_id for claim in claims]
    assert [one.run_id for one in admitted if one.kind is RunKind.CONTINUATION] == targets, order
    asked = Counter((one["run"], one["after"]) for one in lines_of(folder / REQUESTS))
    assert set(asked.values()) <= {1}, f"asked twice: {asked}\n{order}"


def check_effects(folder: Path, facts: list[Event], order: str) -> None:
    effects = lines_of(folder / EFFECTS)
    assert len({one["tool"] for one in effects}) == len(effects), f"an effect was repeated: {effects}\n{order}"
    done = {one["operation"] for one in effects}
    assert done <= {fact.operation_id for fact in facts if isinstance(fact, ToolDispatched)}, order
    for fact in facts:
        if isinstance(fact, ToolResponded) and fact.operation_id is not None and fact.effect is not Effect.UNKNOWN:
            assert (fact.operation_id in done) is (fact.effect is Effect.DONE), f"{fact}\n{order}"
        if isinstance(fact, ToolAttested):
            assert fact.operation_id in done or fact.statement.value != "completed", f"{fact}\n{order}"


def events_of(reader: EventReader, stream: str) -> list[Event]:
    events: list[Event] = []
    previous = FIRST_PREVIOUS_DIGEST
    for row in reader.read(stream, limit=1000):
        sealed = unseal(row, len(events) + 1, previous)
        previous = sealed.digest
        events.append(sealed.event)
    return events


@pytest.mark.parametrize("number", range(ORDERS))
def test_a_drawn_order_of_real_processes_breaks_no_rule(
    forks: Forks, tmp_path: Path, seed: int, number: int, record_property: Callable[[str, object], None]
) -> None:
    record_property("told", check_order(forks, tmp_path / "order", seed, number))


@pytest.mark.soak
def test_thousands_of_drawn_orders_of_real_processes_break_no_rule(forks: Forks, tmp_path: Path, seed: int) -> None:
    for number in range(ORDERS, ORDERS + ORDERS_OF_A_SOAK):
        check_order(forks, tmp_path / str(number), seed, number)
