"""Whatever reads a whole store holds a page of it, and never the store. SPEC section 21.

Four times as many facts are read; what is held meanwhile may grow by a small part of what came in addition: ids, heads,
verdicts. Texts are long, so whoever keeps events is found out.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from safepoint.adapters.interchange.export_lines import lines_of_export
from safepoint.adapters.memory.incarnations import MemoryIncarnations
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.application.export_session import ExportSession
from safepoint.application.inspect_sessions import InspectSessions
from safepoint.application.lineage import read_segment
from safepoint.application.ownership import SessionOwnership
from safepoint.application.states import events_after, load
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.identifiers import SessionId
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

TEXT = "x" * 8_000
FEW, MANY = 300, 1_200
PART_KEPT = 0.1
"""Of what is read in addition; a reader that keeps all of it keeps more than this whole."""


def kept(store: SqliteStore, name: str, texts: int) -> RecordedSession:
    session = RecordedSession(name)
    session.own(store.owners)
    session.keep(store.events, *session.opened())
    for start in range(0, texts, 50):
        session.keep(store.events, *(session.text(TEXT) for _ in range(min(50, texts - start))))
    session.keep(store.events, session.ended())
    return session


def of_one_long_run(path: Path, texts: int) -> SqliteStore:
    store = open_store(path)
    kept(store, "one", texts)
    return store


def of_many_runs(path: Path, texts: int) -> SqliteStore:
    store = open_store(path)
    for number in range(texts // 10):
        kept(store, f"{number:04}", 10)
    return store


SHAPES: Mapping[str, Callable[[Path, int], SqliteStore]] = {"a long run": of_one_long_run, "many runs": of_many_runs}


@pytest.fixture(params=SHAPES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    """A small and a large store of one shape."""
    small, large = (SHAPES[request.param](tmp_path / f"{texts}.sqlite", texts) for texts in (FEW, MANY))
    yield small, large
    small.close()
    large.close()


def sessions(store: SqliteStore) -> list[SessionId]:
    return [SessionId(name.partition(":")[2]) for name in store.streams() if name.startswith("session:")]


def runs(store: SqliteStore) -> list[str]:
    return [name for name in store.streams() if name.startswith("run:")]


def verify(store: SqliteStore) -> None:
    assert VerifyStore(store.events, store, store.owners, store.projections)().sound


def rebuild(store: SqliteStore) -> None:
    store.projections.rebuild()


def export(store: SqliteStore) -> None:
    for session_id in sessions(store):
        for _line in lines_of_export(ExportSession(store.events)(session_id)):
            pass


def list_sessions(store: SqliteStore) -> None:
    ownership = SessionOwnership(store.owners, MemoryIncarnations(), lambda session_id: None)
    for _summary in InspectSessions(store.events, store.views, ownership).every():
        pass


def read_events(store: SqliteStore) -> None:
    with store.events.snapshot() as reader:
        for stream in runs(store):
            for _sealed in events_after(reader, stream, 0, FIRST_PREVIOUS_DIGEST):
                pass


def load_states(store: SqliteStore) -> None:
    with store.events.snapshot() as reader:
        for stream in runs(store):
            load(reader, stream)


READINGS = [verify, rebuild, export, list_sessions, read_events, load_states]


def peak(reading: Callable[[SqliteStore], None], store: SqliteStore) -> int:
    """What Python holds at most while it reads, in bytes."""
    reading(store)  # once before, for whatever is made once
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        reading(store)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return most - before


@pytest.mark.parametrize("reading", READINGS)
def test_reading_four_times_as_much_holds_no_more(
    reading: Callable[[SqliteStore], None], stores: tuple[SqliteStore, SqliteStore]
) -> None:
    small, large = (peak(reading, store) for store in stores)
    assert large - small < PART_KEPT * (MANY - FEW) * len(TEXT)


def test_who_keeps_the_events_is_found_out(tmp_path: Path) -> None:
    """The check itself: what a provider is shown is held, so a plan of a long run must not pass it."""

    def hold(store: SqliteStore) -> None:
        with store.events.snapshot() as reader:
            assert read_segment(reader, RecordedSession("one").run_id()) is not None

    small, large = (of_one_long_run(tmp_path / f"{texts}.sqlite", texts) for texts in (FEW, MANY))
    grown = peak(hold, large) - peak(hold, small)
    small.close()
    large.close()
    assert grown > PART_KEPT * (MANY - FEW) * len(TEXT)
