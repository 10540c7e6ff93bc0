"""Exporting reads one consistent view, verifies what it reads, and says what is wrong."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.application.export_session import (
    ExportBegin,
    ExportedEvent,
    ExportEnd,
    ExportSession,
    SessionMissing,
)
from safepoint.domain import canonical
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.identifiers import SessionId
from safepoint.domain.sealing import DamagedEvent
from safepoint.ports.contract_kit.recorded_runs import RecordedSession


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def recorded(store: MemoryStore) -> RecordedSession:
    recorded = RecordedSession()
    recorded.own(store.owners)
    recorded.keep(store.events, *recorded.opened("a"), recorded.ended("a"))
    recorded.keep(store.events, *recorded.opened("b"))
    return recorded


def test_the_session_comes_first_and_then_its_runs_in_the_order_of_admission(
    store: MemoryStore, recorded: RecordedSession
) -> None:
    begin, *events, end = ExportSession(store.events)(recorded.session_id)
    assert isinstance(begin, ExportBegin)
    assert isinstance(end, ExportEnd)
    streams = ["session:session-one", "run:run-one-a", "run:run-one-b"]
    assert [head.stream for head in begin.heads] == streams
    assert list(dict.fromkeys(one.sealed.stream for one in events if isinstance(one, ExportedEvent))) == streams
    assert end.events == len(events) == sum(head.events for head in begin.heads)


def test_what_is_written_meanwhile_is_not_exported_in_part(store: MemoryStore, recorded: RecordedSession) -> None:
    parts = ExportSession(store.events)(recorded.session_id)
    begin = next(parts)
    recorded.keep(store.events, recorded.text("later", "b"), recorded.ended("b"))
    exported = [one.sealed for one in parts if isinstance(one, ExportedEvent)]
    assert isinstance(begin, ExportBegin)
    assert len(exported) == sum(head.events for head in begin.heads)


def test_a_session_that_is_not_there_is_named(store: MemoryStore) -> None:
    with pytest.raises(SessionMissing, match="nobody"):
        list(ExportSession(store.events)(SessionId("nobody")))


def test_a_store_that_could_not_be_looked_at_is_no_empty_export(store: MemoryStore, recorded: RecordedSession) -> None:
    store.close()
    with pytest.raises(StoreUnavailable):
        list(ExportSession(store.events)(recorded.session_id))


def test_a_damaged_session_is_not_exported_as_if_it_were_whole(store: MemoryStore, recorded: RecordedSession) -> None:
    records = store._tables.records
    place = next(n for n, record in enumerate(records) if record.topic == "message.user.v1")
    records[place] = records[place]._replace(state=records[place].state.replace(b"hello", b"hullo"))
    exported = ExportSession(store.events)(recorded.session_id)
    with pytest.raises(DamagedEvent):
        list(exported)


def test_redaction_looks_at_every_argument_whatever_it_is_called(store: MemoryStore, recorded: RecordedSession) -> None:
    """Field report r3-144: an argument that is called like an id of ours is still somebody's argument."""
    args: JsonValue = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "note": [{"file_hash": "password=hunter22"}]}
    recorded.keep(store.events, recorded.called("x", "b", args=args))
    parts = ExportSession(store.events)(recorded.session_id, redacted=True)
    *_, last = (part for part in parts if isinstance(part, ExportedEvent))
    assert b"AKIA" not in last.state
    assert b"hunter22" not in last.state
    assert last.sealed.event.event_id.encode() in last.state
    assert last.args_hash == canonical.args_hash("write_file", args)
