"""Importing: whole or not at all, the same at every try, foreign for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.interchange.export_lines import lines_of_export
from safepoint.adapters.interchange.formats import history_formats
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.sqlite.store import SqliteStore, open_store
from safepoint.application.export_session import ExportSession
from safepoint.application.import_session import Imported, ImportSession
from safepoint.application.importable import ImportRefusal, ImportRefused
from safepoint.application.judge_history import FormatUnknown, HistoryReader
from safepoint.application.ledger import Ledger
from safepoint.application.lineage import read_segment
from safepoint.application.ownership import SessionBusy, SessionOwnership
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.event import Event
from safepoint.domain.events.session import EffectWatched
from safepoint.domain.identifiers import RunId, SessionId, run_stream, session_stream
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.domain.unsealing import unseal
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Pay the bill."},
    {"role": "assistant", "content": "I pay.", "tool_calls": [
        {"id": "c1", "function": {"name": "pay", "arguments": '{"cents": 500}'}}]},
]  # fmt: skip
ANSWERED: list[dict[str, Any]] = [
    *CHAT,
    {"role": "tool", "tool_call_id": "c1", "content": "paid"},
    {"role": "assistant", "content": "Done."},
]


def data_of(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps(messages).encode()


class Place:
    """A store, and a process that imports into it."""

    def __init__(self, store: MemoryStore | SqliteStore, host: MemoryHost | None = None) -> None:
        self.store = store
        ledger = Ledger(store.events, store.owners)
        self.ownership = SessionOwnership(store.owners, MemoryIncarnations(host or MemoryHost()), ledger.forget)
        self.import_ = ImportSession(store.events, store.events, self.ownership, HistoryReader(history_formats()))

    def events(self, stream: str) -> list[Event]:
        found, digest = list[Event](), FIRST_PREVIOUS_DIGEST
        with self.store.events.snapshot() as reader:
            for row in reader.read(stream):
                sealed = unseal(row, len(found) + 1, digest)
                digest = sealed.digest
                found.append(sealed.event)
        return found

    @property
    def count(self) -> int:
        return self.store.condition().events


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    store = MemoryStore() if request.param == "memory" else open_store(tmp_path / "store.sqlite")
    yield Place(store)
    store.close()


def refused(place: Place, data: bytes, format_name: str = "auto", session: str | None = None) -> ImportRefused:
    with pytest.raises(ImportRefused) as found:
        place.import_(data, format_name, None if session is None else SessionId(session))
    assert place.count == 0
    return found.value


def test_an_import_is_a_session_of_foreign_runs_that_verifies(place: Place) -> None:
    imported = place.import_(data_of([*ANSWERED, {"role": "user", "content": "And now?"}]))
    assert (len(imported.runs), imported.already_there) == (2, False)
    with place.store.events.snapshot() as reader:
        for run_id in imported.runs:
            segment = read_segment(reader, run_id)
            assert segment is not None
            assert (segment.foreign, reader.standing(run_id).run_generation) == (True, 0)
    verify = VerifyStore(place.store.events, place.store, place.store.owners, place.store.projections)
    assert verify().sound
    assert place.ownership.owner_of(imported.session_id)[2] is None, "nobody owns what was imported"


def test_what_was_judged_is_what_is_imported(place: Place) -> None:
    imported = place.import_(data_of(CHAT))
    with place.store.events.snapshot() as reader:
        segment = read_segment(reader, imported.runs[0])
    assert segment is not None
    verdicts = [(one.call_id, one.status, one.reason) for one in segment.resolution.verdicts]
    assert verdicts == [(one.call_id, one.status, one.reason) for one in imported.judgement.runs[0].resolution.verdicts]
    assert verdicts == [("c1", "indeterminate", "legacy_dispatch_unknown")]


def test_a_call_without_certain_outcome_is_watched(place: Place) -> None:
    """SPEC F9: a later call must not repeat it unasked."""
    imported = place.import_(data_of(CHAT))
    (watched,) = [e for e in place.events(session_stream(imported.session_id)) if isinstance(e, EffectWatched)]
    assert (watched.tool_name, watched.status, watched.mode) == ("pay", "indeterminate", "outcome_unknown")
    answered = place.import_(data_of(ANSWERED))
    assert not [e for e in place.events(session_stream(answered.session_id)) if isinstance(e, EffectWatched)]


def test_a_second_import_changes_nothing(place: Place) -> None:
    first = place.import_(data_of(CHAT))
    before = place.count
    second = place.import_(data_of(CHAT))
    assert (second.already_there, second.runs, place.count) == (True, first.runs, before)


def test_an_import_that_was_interrupted_is_done_again_to_the_same_bytes(tmp_path: Path) -> None:
    """Field report r3-088: killed in the middle, tried again later."""
    whole = Place(open_store(tmp_path / "whole.sqlite"))
    whole.import_(data_of(CHAT))

    class Killed(BaseException):
        """What a test dies of."""

    def die(point: str) -> None:
        if point == "store.statement:4":
            raise Killed

    broken = open_store(tmp_path / "broken.sqlite", on_point=die)
    with pytest.raises(Killed):
        Place(broken).import_(data_of(CHAT))
    broken.close()
    again = Place(open_store(tmp_path / "broken.sqlite"))
    assert again.count == 0, "all or nothing"
    imported = again.import_(data_of(CHAT))
    streams = [session_stream(imported.session_id), *(run_stream(run_id) for run_id in imported.runs)]
    for stream in streams:
        assert rows(whole, stream) == rows(again, stream)
    for one in (whole, again):
        one.store.close()


def rows(place: Place, stream: str) -> list[bytes]:
    with place.store.events.snapshot() as reader:
        return [row.state for row in reader.read(stream)]


@pytest.mark.parametrize(
    ("data", "format_name", "code"),
    [
        (b'[{"role": "user", "content": "cut', "openai-chat", ImportRefusal.UNREADABLE),
        (b"", "codex", ImportRefusal.UNREADABLE),
        (b'{"role": "user", "content": "a"}\n\0\0\n', "openai-chat", ImportRefusal.UNREADABLE),
        (data_of([*CHAT, {"role": "tool", "tool_call_id": "c2", "content": "x"}]), "auto", ImportRefusal.CORRUPT),
        (data_of([{"role": "system", "content": "only this"}]), "openai-chat", ImportRefusal.NO_RUNS),
        (data_of([{"role": "user", "content": "a" * 1_100_000}]), "openai-chat", ImportRefusal.NOT_EXPRESSIBLE),
    ],
    ids=["torn", "empty", "nul", "orphan", "nothing", "too large"],
)
def test_what_is_not_whole_or_contradicts_itself_adds_nothing(
    place: Place, data: bytes, format_name: str, code: ImportRefusal
) -> None:
    """Field reports r3-090, r3-006 and r3-024."""
    assert refused(place, data, format_name).code is code


def test_a_call_that_differs_between_block_and_field_is_refused(place: Place) -> None:
    """Field report r3-025."""
    both = CHAT[1] | {"content": [{"type": "tool_use", "id": "c1", "name": "pay", "input": {"cents": 9}}]}
    refusal = refused(place, data_of([CHAT[0], both]))
    assert refusal.code is ImportRefusal.CORRUPT
    assert [issue.code for run in refusal.judgement.runs for issue in run.resolution.issues] == ["duplicate_call"]


def test_a_file_of_no_known_format_adds_nothing(place: Place) -> None:
    with pytest.raises(FormatUnknown):
        place.import_(b"{}")
    assert place.count == 0


def test_a_session_that_says_something_else_is_left_alone(place: Place) -> None:
    place.import_(data_of(CHAT), "auto", SessionId("s"))
    before = place.count
    with pytest.raises(ImportRefused) as found:
        place.import_(data_of(ANSWERED), "auto", SessionId("s"))
    assert (found.value.code, place.count) == (ImportRefusal.DIFFERS, before)


def test_two_files_go_into_one_store(place: Place) -> None:
    first, second = place.import_(data_of(CHAT)), place.import_(data_of(ANSWERED))
    assert first.session_id != second.session_id
    assert set(first.runs).isdisjoint(second.runs)
    third = place.import_(data_of(CHAT), "auto", SessionId("mine"))
    assert third.session_id == "mine"


def test_a_session_of_a_living_process_is_busy() -> None:
    store, host = MemoryStore(), MemoryHost()
    here, there = Place(store, host), Place(store, host)
    there.ownership.own(SessionId("s"))
    with pytest.raises(SessionBusy):
        here.import_(data_of(CHAT), "auto", SessionId("s"))
    assert here.count == 0


def test_a_full_store_keeps_nothing_and_the_next_try_does() -> None:
    store = MemoryStore()
    place = Place(store)
    store.fail_next(Failure.FULL)
    with pytest.raises(StoreFull):
        place.import_(data_of(CHAT))
    assert place.count == 0
    assert not place.import_(data_of(CHAT)).already_there


# ---- our own export ----


def exported(*, redacted: bool = False) -> tuple[bytes, RecordedSession, MemoryStore]:
    store, recorded = MemoryStore(), RecordedSession()
    recorded.own(store.owners)
    recorded.keep(store.events, *recorded.opened("a"), recorded.text("Hello.", "a"), recorded.ended("a"))
    recorded.keep(store.events, *recorded.opened("b"), recorded.called("x", "b"))
    parts = ExportSession(store.events)(recorded.session_id, redacted=redacted)
    return b"".join(lines_of_export(parts)), recorded, store


def test_an_export_is_imported_without_a_loss(place: Place) -> None:
    data, recorded, _ = exported()
    imported: Imported = place.import_(data)
    assert imported.session_id == recorded.session_id
    again = b"".join(lines_of_export(ExportSession(place.store.events)(recorded.session_id)))
    head, *events, _ = again.splitlines()
    first, *rest, _ = data.splitlines()
    assert events == rest
    assert json.loads(head) == {**json.loads(first), "foreign": True}, "imported runs stay foreign in what is exported"


def test_an_undispatched_call_of_an_imported_run_is_indeterminate(place: Place) -> None:
    """SPEC section 6: here it was never dispatched; there the store could vouch for that, here nobody can."""
    data, recorded, store = exported()
    place.import_(data)
    for one, expected in ((store, "definitely_not_dispatched"), (place.store, "indeterminate")):
        with one.events.snapshot() as reader:
            segment = read_segment(reader, RunId(recorded.run_id("b")))
        assert segment is not None
        assert [verdict.status for verdict in segment.resolution.verdicts] == [expected]


def test_a_redacted_export_is_refused(place: Place) -> None:
    assert refused(place, exported(redacted=True)[0]).code is ImportRefusal.REDACTED


def test_an_export_stays_the_session_that_it_is(place: Place) -> None:
    assert refused(place, exported()[0], "safepoint", "another").code is ImportRefusal.OTHER_SESSION


def test_an_export_goes_back_where_it_came_from_as_nothing_new() -> None:
    data, recorded, store = exported()
    place = Place(store)
    assert place.import_(data).already_there
    recorded.keep(store.events, recorded.text("later", "b"))
    assert place.import_(data).already_there, "the session has moved on, and still holds all of it"


def test_an_id_that_stands_elsewhere_is_told(place: Place) -> None:
    other = RecordedSession("other")
    other.own(place.store.owners)
    data, recorded, _ = exported()
    taken = other.opened("x")
    stolen = taken[1].model_copy(update={"run_id": recorded.run_id("a")})
    place.store.events.append([other.commit(taken[0], stolen)])
    before = place.count
    with pytest.raises(ImportRefused) as found:
        place.import_(data)
    assert (found.value.code, place.count) == (ImportRefusal.ID_TAKEN, before)
