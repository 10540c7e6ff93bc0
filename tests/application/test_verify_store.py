"""Verifying a store: everything is read, damage is named, and nothing stops at the first damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.tools.decorator import tool
from safepoint.application import verify_store
from safepoint.application.verify_store import Verification, VerifyStore
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import RunAdmitted, RunKind
from safepoint.domain.identifiers import InvocationId, RunId, SessionId, TurnId
from safepoint.domain.sealing import StoredRecord
from safepoint.domain.unique_ids import IdKind
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.session_owners import Ownership
from safepoint.ports.store_keeping import Trust

from .wiring import Process, go


def verify(store: MemoryStore, progress: Callable[[int, int], None] = lambda streams, events: None) -> Verification:
    return VerifyStore(store.events, store, store.owners, store.projections)(progress)


def store_with(*names: str) -> MemoryStore:
    """Sessions with an ended run each."""
    store = MemoryStore()
    for name in names:
        session = RecordedSession(name)
        session.own(store.owners)
        session.keep(store.events, *session.opened())
        session.keep(store.events, session.text("1"), session.ended(status=RunStatus.COMPLETED))
    return store


def replace(store: MemoryStore, stream: str, version: int, change: Callable[[StoredRecord], StoredRecord]) -> None:
    """Change one stored event."""
    records = store._tables.records
    place = next(i for i, one in enumerate(records) if (one.stream, one.version) == (stream, version))
    records[place] = change(records[place])


def flipped(record: StoredRecord) -> StoredRecord:
    return record._replace(state=record.state.replace(b'"text":"1"', b'"text":"2"'))


def test_a_sound_store_is_sound_and_all_of_it_is_read() -> None:
    told: list[tuple[int, int]] = []
    found = verify(store_with("a", "b"), lambda streams, events: told.append((streams, events)))
    assert found.sound
    assert (found.streams, found.events) == (4, 12)
    assert told[-1] == (4, 12)
    assert [streams for streams, _ in told] == [1, 2, 3, 4]


def test_what_a_real_run_wrote_is_sound() -> None:
    @tool()
    def act() -> str:
        """Act."""
        return "acted"

    process = Process()
    go(lambda: process.turn("hello", [calls(("act", {}), ("act", {})), says("done")], [act]))
    assert verify(process.world.store).sound


def test_the_first_damaged_event_of_each_stream_is_named_and_the_others_are_read() -> None:
    store = store_with("a", "b", "c")
    replace(store, "run:run-a-a", 3, flipped)
    replace(store, "session:session-b", 1, lambda one: one._replace(topic="message.user.v1"))
    found = verify(store)
    assert not found.sound
    assert [(one.stream, one.sequence, one.topic, one.code) for one in found.damages] == [
        ("run:run-a-a", 4, "run.ended.v1", "chain_broken"),
        ("session:session-b", 1, "message.user.v1", "chain_broken"),
    ]
    assert (found.damaged_streams, found.streams) == (2, 6)


def test_the_newest_event_of_a_stream_is_believed_by_nobody_but_the_projections() -> None:
    """Nothing follows it that would name its digest, so a change of it shows in the views, where one is made of it."""
    store = store_with("a")
    replace(
        store,
        "run:run-a-a",
        4,
        lambda one: one._replace(state=one.state.replace(b'"status":"completed"', b'"status":"cancelled"')),
    )
    found = verify(store)
    assert not found.sound
    assert [(one.table, one.kind) for one in found.projections] == [("runs", "different")]


def test_an_event_that_contradicts_those_before_it_is_named_with_its_issue() -> None:
    store = MemoryStore()
    session = RecordedSession("a")
    session.own(store.owners)
    session.keep(store.events, *session.opened())
    session.keep(store.events, session.called("one"), session.called("one"), session.ended())
    (damage,) = verify(store).damages
    assert (damage.stream, damage.sequence, damage.topic, damage.code) == (
        "run:run-a-a",
        4,
        "tool.called.v1",
        "duplicate_call",
    )


def test_a_run_that_a_session_admitted_and_that_has_no_event_is_missing() -> None:
    store = store_with("a")
    session = RecordedSession("b")
    session.own(store.owners)
    session.keep(store.events, *session.opened())
    lost = RunAdmitted(
        event_id=session.event_id(),
        session_id=session.session_id,
        occurred_at=NOON,
        run_id=RunId("lost"),
        turn_id=TurnId("t"),
        invocation_id=InvocationId("i"),
        kind=RunKind.TURN,
    )
    session.keep(store.events, lost)
    (damage,) = verify(store).damages
    assert (damage.stream, damage.sequence, damage.code) == ("session:session-b", 3, "sequence_gap")
    assert "lost" in damage.detail


def test_an_event_id_that_the_index_has_elsewhere_is_named() -> None:
    store = store_with("a")
    used = store._tables.used_ids
    for key in [key for key in used if key.kind is IdKind.EVENT][:1]:
        used[key] += 1
    assert [one.code for one in verify(store).damages] == ["duplicate_event_id"]


def test_a_continuation_whose_source_changed_is_named() -> None:
    store = MemoryStore()
    session = RecordedSession("a")
    session.own(store.owners)
    session.keep(store.events, *session.opened())
    session.keep(store.events, session.text("1"), session.ended())
    claimed = session.claimed()
    wrong = claimed.model_copy(update={"segments": (claimed.segments[0].model_copy(update={"digest": "cd" * 32}),)})
    session.keep(store.events, wrong)
    (damage,) = verify(store).damages
    assert (damage.sequence, damage.topic, damage.code) == (5, "run.claimed.v1", "source_prefix_digest_mismatch")


@pytest.mark.parametrize("trust", [Trust.BEHIND_ANCHOR, Trust.ANCHOR_MISSING, Trust.ANCHOR_MISMATCH])
def test_a_store_whose_end_may_be_missing_is_not_sound(trust: Trust) -> None:
    store = store_with("a")
    store.distrust(trust)
    found = verify(store)
    assert (found.sound, found.damages) == (False, [])


def test_a_copied_store_may_be_sound() -> None:
    store = store_with("a")
    store.distrust(Trust.COPIED)
    assert verify(store).sound


def test_an_owner_that_was_never_registered_is_named() -> None:
    store = store_with("a")
    tables = store._tables
    session_id = next(iter(tables.owners))
    tables.owners[session_id] = Ownership(session_id, tables.owners[session_id].incarnation_id, 1)
    tables.incarnations.clear()
    found = verify(store)
    assert [(one.session_id, one.fault) for one in found.owners] == [(session_id, "never_registered")]
    assert not found.sound


def test_a_session_whose_owners_row_is_gone_is_named_once() -> None:
    store = store_with("a", "b")
    store._tables.owners.pop(SessionId("session-a"))
    found = verify(store)
    assert [(one.session_id, one.fault) for one in found.owners] == [("session-a", "missing")]
    assert not found.sound


def test_a_row_of_an_earlier_epoch_than_its_events_is_named() -> None:
    store = store_with("a")
    row = store._tables.owners[SessionId("session-a")]
    assert row.epoch == 1
    store._tables.owners[row.session_id] = row._replace(epoch=0)
    found = verify(store)
    assert [(one.session_id, one.fault) for one in found.owners] == [("session-a", "behind_its_events")]
    assert not found.sound


def test_of_very_many_owners_that_are_wrong_all_are_counted_and_some_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_store, "FINDINGS_MAX", 2)
    store = store_with("a", "b", "c", "d")
    owners = store._tables.owners
    del owners[SessionId("session-a")], owners[SessionId("session-b")], owners[SessionId("session-c")]
    store._tables.incarnations.clear()
    found = verify(store)
    assert (found.owner_faults, [one.session_id for one in found.owners]) == (4, ["session-a", "session-b"])
    assert not found.sound


@pytest.mark.parametrize("gone", [False, True], ids=["sound", "gone"])
def test_a_session_of_many_runs_is_looked_up_and_named_once(gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    for _ in range(3):
        go(lambda: process.turn("go", [says("done")]))
    store = process.world.store
    assert len([name for name in store.streams() if name.startswith("run:")]) == 3
    if gone:
        store._tables.owners.clear()
    asked: list[SessionId] = []
    owner = store.owners.owner

    def counted(session_id: SessionId) -> Ownership | None:
        asked.append(session_id)
        return owner(session_id)

    monkeypatch.setattr(store.owners, "owner", counted)
    found = verify(store)
    assert found.owner_faults == len(found.owners) == gone
    assert len(asked) <= 3


def test_an_event_in_a_stream_without_a_name_is_named() -> None:
    store = store_with("a")
    store._tables.records.append(StoredRecord("", 1, "message.user.v1", b"{}"))
    store._tables.streams[""] = [len(store._tables.records) - 1]
    (damage,) = verify(store).damages
    assert (damage.stream, damage.sequence, damage.code) == ("", 1, "chain_broken")


def test_views_that_are_not_what_the_events_make_are_named_by_row() -> None:
    store = store_with("a", "b")
    runs = store._tables.projections["runs"]
    first, second = sorted(runs)
    runs[first]["status"] = "failed"
    del runs[second]
    found = verify(store)
    assert {(one.table, one.key, one.kind) for one in found.projections} == {
        ("runs", first, "different"),
        ("runs", second, "missing"),
    }
    assert found.projection_differences == 2
