"""Recorded sessions of other programs, where they are at hand: judged, imported, and counted as their list counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.judgement_documents import counts
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.application.import_session import ImportSession
from safepoint.application.importable import ImportRefusal, ImportRefused
from safepoint.application.judge_history import FormatUnknown
from safepoint.application.lineage import read_segment
from safepoint.application.ownership import SessionOwnership
from safepoint.domain.events.tool import ToolCalled

from .reading import READ, events_of, judged

FOLDER = Path(__file__).parents[4] / "shared" / "transcripts"
LISTED: list[dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text()) if FOLDER.is_dir() else []

OF_NO_FORMAT_HERE = {
    "gemini_cli_tool_calls_with_results.json",
    "gemini_tool_calls.json",
    "inspect_log_images_tc.json",
    "inspect_log_tool_call_error.json",
    "pi_session.jsonl",
}
"""Formats that SPEC section 19 does not list: told as unknown, never guessed."""
REFUSED = {
    "claudecode_edge_cases.jsonl": ImportRefusal.UNREADABLE,
    "codex_function_calls.jsonl": ImportRefusal.UNREADABLE,
}
RESULTS_IN_UNREADABLE_LINES = {"claudecode_edge_cases.jsonl": 1}
"""The list counts an answer under a misspelt member; we tell of the line instead."""

covered = pytest.mark.parametrize(
    "listed", [one for one in LISTED if one["file"] not in OF_NO_FORMAT_HERE], ids=lambda one: one["file"]
)


@covered
def test_calls_and_answers_are_those_of_the_list(listed: dict[str, Any]) -> None:
    stats, judgement = listed["stats"], judged((FOLDER / listed["file"]).read_bytes())
    calls = events_of(judgement, ToolCalled)
    assert len({call.provider_call_id for call in calls}) == stats["distinct_call_ids"]
    answered = {
        call.provider_call_id
        for run in judgement.runs
        for call in run.read.events
        if isinstance(call, ToolCalled)
        and any(one.call_id == call.call_id and one.response_event_id for one in run.resolution.verdicts)
    }
    unread = RESULTS_IN_UNREADABLE_LINES.get(listed["file"], 0)
    assert len(answered) + unread == stats["distinct_result_ids"]
    assert len({call.provider_call_id for call in calls} - answered) == stats["n_calls_without_result"] + unread
    assert counts(judgement)["calls"] >= stats["distinct_call_ids"]


@covered
def test_every_line_that_is_no_object_is_told(listed: dict[str, Any]) -> None:
    stats, history = listed["stats"], judged((FOLDER / listed["file"]).read_bytes()).history
    told = [finding for finding in history.findings if finding.code == "not_an_object"]
    assert len(told) == stats["lines_not_objects"]
    assert stats["lines"] in {None, history.lines}


@covered
def test_a_history_that_can_be_made_is_one_that_strict_providers_take(listed: dict[str, Any]) -> None:
    judgement = judged((FOLDER / listed["file"]).read_bytes())
    if judgement.replay.blocked is None:
        assert judgement.replay.illegal is None
    else:
        assert {reason.code for reason in judgement.reasons} & {
            "dangling_tool_state",
            "tool_recovery_corruption",
            "source_run_unreadable",
        }


@covered
def test_it_is_imported_whole_or_refused_with_its_reason(listed: dict[str, Any]) -> None:
    data, store = (FOLDER / listed["file"]).read_bytes(), MemoryStore()
    ownership = SessionOwnership(store.owners, MemoryIncarnations(MemoryHost()), lambda session_id: None)
    import_ = ImportSession(store.events, store.events, ownership, READ)
    if listed["file"] in REFUSED:
        with pytest.raises(ImportRefused) as found:
            import_(data)
        assert (found.value.code, store.condition().events) == (REFUSED[listed["file"]], 0)
        return
    imported = import_(data)
    with store.events.snapshot() as reader:
        segments = [read_segment(reader, run_id) for run_id in imported.runs]
    stored = [one.status for segment in segments if segment is not None for one in segment.resolution.verdicts]
    assert stored == [one.status for run in imported.judgement.runs for one in run.resolution.verdicts]
    assert import_(data).already_there


@pytest.mark.parametrize("name", sorted(OF_NO_FORMAT_HERE) if LISTED else [])
def test_a_format_that_is_not_known_here_is_not_guessed(name: str) -> None:
    with pytest.raises(FormatUnknown):
        READ((FOLDER / name).read_bytes(), "auto")
