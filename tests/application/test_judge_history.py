"""Judging an export of ours: as the store would have it, with an open run as repair would leave it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safepoint.adapters.interchange.export_lines import lines_of_export
from safepoint.adapters.interchange.formats import history_formats
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.application.export_session import ExportSession
from safepoint.application.judge_history import HistoryReader, Judgement, judge
from safepoint.domain import canonical
from safepoint.domain.events.run import CancelRequested, RunStatus
from safepoint.domain.events.session import RunAbandoned
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession
from safepoint.ports.history_format import Finding, FindingCode, Place
from safepoint.ports.store_keeping import Trust

READ = HistoryReader(history_formats())


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def recorded(store: MemoryStore) -> RecordedSession:
    recorded = RecordedSession()
    recorded.own(store.owners)
    recorded.keep(store.events, *recorded.opened())
    return recorded


def judged(store: MemoryStore, recorded: RecordedSession) -> Judgement:
    parts = ExportSession(store.events)(recorded.session_id)
    return judge(READ(b"".join(lines_of_export(parts)), "safepoint"))


def codes(judgement: Judgement) -> list[str]:
    return [reason.code.value for reason in judgement.reasons]


def kinds(judgement: Judgement) -> list[str]:
    return [item.kind for item in judgement.replay.items]


def test_an_open_run_is_judged_as_repair_would_leave_it(store: MemoryStore, recorded: RecordedSession) -> None:
    recorded.keep(store.events, recorded.called("x"))
    judgement = judged(store, recorded)
    assert [verdict.status for verdict in judgement.runs[0].resolution.verdicts] == ["definitely_not_dispatched"]
    assert (codes(judgement), kinds(judgement)) == ([], ["user", "call", "result"])
    assert judgement.runs[0].status is None, "what is told of the file is what stands in it"


def test_a_dispatch_without_outcome_parks(store: MemoryStore, recorded: RecordedSession) -> None:
    call = recorded.called("x")
    hashed = {"args_hash": canonical.args_hash(call.tool_name, call.args)}
    recorded.keep(store.events, call, recorded.dispatched("x").model_copy(update=hashed))
    assert codes(judged(store, recorded)) == ["dangling_tool_state"]


def test_a_dispatch_of_other_arguments_is_corruption(store: MemoryStore, recorded: RecordedSession) -> None:
    recorded.keep(store.events, recorded.called("x"), recorded.dispatched("x"))
    judgement = judged(store, recorded)
    assert judgement.has_corruption
    assert codes(judgement) == ["tool_recovery_corruption"]


def test_a_run_that_a_person_stopped_could_be_continued(store: MemoryStore, recorded: RecordedSession) -> None:
    spine = recorded.text("").model_dump(include={"event_id", "session_id", "run_id", "turn_id", "invocation_id"})
    recorded.keep(store.events, CancelRequested(**spine, occurred_at=NOON, by="somebody"))
    assert codes(judged(store, recorded)) == []


def test_a_question_that_waits_parks(store: MemoryStore, recorded: RecordedSession) -> None:
    recorded.keep(store.events, recorded.called("x"), recorded.asked("x"), recorded.ended())
    assert codes(judged(store, recorded)) == ["pending_permission"]


def test_a_completed_run_has_nothing_to_resume(store: MemoryStore, recorded: RecordedSession) -> None:
    recorded.keep(store.events, recorded.text("Hello."), recorded.ended(status=RunStatus.COMPLETED))
    judgement = judged(store, recorded)
    assert codes(judgement) == ["resume_candidate_missing"]
    assert (kinds(judgement), len(judgement.replay.trimmed)) == (["user"], 1)


def test_a_run_that_a_person_gave_up_is_no_source(store: MemoryStore, recorded: RecordedSession) -> None:
    recorded.keep(
        store.events,
        recorded.ended(),
        RunAbandoned(
            event_id=recorded.event_id(),
            session_id=recorded.session_id,
            occurred_at=NOON,
            run_id=recorded.run_id(),
            by="somebody",
            note="damaged",
            last_good_sequence=1,
        ),
    )
    judgement = judged(store, recorded)
    assert codes(judgement) == ["resume_candidate_missing"]
    assert judgement.reasons[0].detail["why"] == "abandoned"


def test_what_no_event_can_hold_parks_with_its_place(store: MemoryStore, recorded: RecordedSession) -> None:
    recorded.keep(store.events, recorded.ended())
    history = judged(store, recorded).history
    finding = Finding(FindingCode.TOO_LARGE, Place(7, 99))
    judgement = judge(replace(history, findings=(finding,)))
    assert codes(judgement) == ["provider_replay_unsupported"]
    assert judgement.reasons[0].detail == {"line": 7, "offset": 99, "finding": "too_large"}


def test_a_reader_knows_every_format_of_the_specification() -> None:
    named = {"safepoint", "maka", "openai-chat", "openai-responses", "anthropic", "claude-code", "codex"}
    assert set(READ.formats) == named
    assert {name: one.name for name, one in READ.formats.items()} == {name: name for name in named}


@pytest.mark.parametrize("trust", [Trust.COPIED, Trust.BEHIND_ANCHOR])
def test_an_export_of_a_store_that_cannot_vouch_is_judged_as_foreign(
    store: MemoryStore, recorded: RecordedSession, trust: Trust
) -> None:
    """Its dispatch may have been lost: here the call may have been executed."""
    recorded.keep(store.events, recorded.called("x"))
    store.distrust(trust)
    judgement = judged(store, recorded)
    assert judgement.history.foreign
    assert [verdict.status for verdict in judgement.runs[0].resolution.verdicts] == ["indeterminate"]
    assert {"foreign_run_not_adopted", "dangling_tool_state"} <= set(codes(judgement))
