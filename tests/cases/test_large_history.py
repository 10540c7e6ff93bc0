"""Field reports: very many calls, sessions, or bytes. SPEC F13, section 7; no time is asserted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from safepoint.adapters.memory.incarnations import MemoryIncarnations
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.adapters.tools.decorator import tool
from safepoint.application.inspect_sessions import InspectSessions, SessionPage
from safepoint.application.ownership import SessionOwnership
from safepoint.application.session_health import CHECKED_BYTES_MAX
from safepoint.domain.events.event import Json
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import EventId, RunId
from safepoint.domain.replay.items import ResultItem
from safepoint.domain.sealing import StoredRecord
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.event_store import (
    Commit,
    CommitAnswer,
    EventReader,
    EventStore,
    Location,
    Standing,
    Stored,
)

from .resuming import ResumingProcess, SharedWorld

SESSIONS = 2_600
PAGE = 50


@pytest.mark.parametrize("count", [99, 100, 128, 150, 1000])
def test_r3_044_a_step_of_many_finished_calls_is_resumed_with_all_of_them_and_none_again(count: int) -> None:
    """One step with very many calls, all finished; X; resume."""
    bodies: list[int] = []

    @tool(recovery="replay_safe")
    def act(n: int) -> str:
        """Act."""
        bodies.append(n)
        return str(n)

    world = SharedWorld()
    wanted: list[tuple[str, Json]] = [("act", {"n": n}) for n in range(count)]
    ResumingProcess(world).runs("go", [calls(*wanted)], [act])
    model = PlannedModel([says("done")])
    assert ResumingProcess(world).continues(model, [act]).outcome.status is RunStatus.COMPLETED
    results = [item.result for item in model.asked[0].request.history if isinstance(item, ResultItem)]
    assert results == [str(n) for n in range(count)]
    assert sorted(bodies) == list(range(count))


class Counting(EventStore):
    """A store of which is counted how many bytes of facts are read."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.bytes = 0

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        return self.store.append(commits)

    @contextmanager
    def _counted(self) -> Iterator[EventReader]:
        with self.store.snapshot() as reader:
            yield _CountingReader(reader, self)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        return self._counted()

    def close(self) -> None:
        self.store.close()


class _CountingReader(EventReader):
    def __init__(self, reader: EventReader, counting: Counting) -> None:
        self._reader = reader
        self._counting = counting

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Sequence[StoredRecord]:
        rows = self._reader.read(stream, after=after, limit=limit)
        self._counting.bytes += sum(len(row.state) for row in rows)
        return rows

    def last(self, stream: str) -> StoredRecord | None:
        row = self._reader.last(stream)
        self._counting.bytes += 0 if row is None else len(row.state)
        return row

    def locate(self, event_id: EventId) -> Location | None:
        return self._reader.locate(event_id)

    def standing(self, run_id: RunId) -> Standing:
        return self._reader.standing(run_id)


def listing(store: SqliteStore) -> tuple[SessionPage, int]:
    """A page of the list, and how many bytes of facts were read for it."""
    counting = Counting(store.events)
    ownership = SessionOwnership(store.owners, MemoryIncarnations(), lambda session_id: None)
    return InspectSessions(counting, store.views, ownership).page(limit=PAGE), counting.bytes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store(tmp_path / "store.sqlite")
    yield store
    store.close()


def test_r3_150_a_page_of_very_many_sessions_costs_what_the_page_costs(store: SqliteStore) -> None:
    """2,600 sessions; run the list: a transcript is not parsed, however many there are."""
    owned = [RecordedSession(f"{number:04}") for number in range(SESSIONS)]
    for session in owned:
        session.own(store.owners)
    some = 0
    for start in range(0, SESSIONS, 100):
        part = owned[start : start + 100]
        commits = [session.commit(*session.opened(), session.text("x" * 1_000), session.ended()) for session in part]
        assert store.events.append(commits) == [Stored()] * len(part)
        if start == 0:
            page, some = listing(store)
            assert len(page.sessions) == PAGE
    page, all_of_them = listing(store)
    assert len(page.sessions) == PAGE
    assert page.after is not None
    assert all_of_them == some


def test_r3_150_large_transcripts_are_read_in_part_only(store: SqliteStore) -> None:
    session = RecordedSession()
    session.own(store.owners)
    session.keep(store.events, *session.opened())
    size = 100_000
    for _ in range(5):
        session.keep(store.events, *(session.text("x" * size) for _ in range(20)))
    session.keep(store.events, session.ended())
    page, read = listing(store)
    assert [one.state.value for one in page.sessions] == ["failed"]
    assert CHECKED_BYTES_MAX <= read < 10 * size, "of a hundred times that size"
