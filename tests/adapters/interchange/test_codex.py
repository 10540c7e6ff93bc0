"""Codex rollouts: response items are the conversation; how a turn ended is said beside them."""

from __future__ import annotations

from typing import Any

from safepoint.domain.events.model import ModelThinking
from safepoint.domain.events.run import CancelRequested, RunOpened
from safepoint.domain.events.tool import ToolResponded

from .reading import SAMPLES, events_of, exit_status, findings, judged, lines, replayed, statuses, verdicts


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T10:00:00Z", "type": "response_item", "payload": payload}


def event(kind: str) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T10:00:00Z", "type": "event_msg", "payload": {"type": kind}}


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


def call(call_id: str, arguments: str | None = "{}", name: str = "shell") -> dict[str, Any]:
    return item(type="function_call", name=name, call_id=call_id, arguments=arguments)


def output(call_id: str, text: str = "ok") -> dict[str, Any]:
    return item(type="function_call_output", call_id=call_id, output=text)


def test_a_turn_that_a_person_stopped_is_cancelled_and_could_be_continued() -> None:
    judgement = judged((SAMPLES / "codex_aborted.jsonl").read_bytes())
    assert (statuses(judgement), exit_status(judgement)) == (["cancelled"], 0)
    assert len(events_of(judgement, CancelRequested)) == 1
    (opened,) = events_of(judgement, RunOpened)
    assert (opened.session_id, opened.cwd) == ("0198c0de-0000-7000-8000-000000000001", "/project")
    assert opened.profile.model == "gpt-codex"


def test_what_is_recorded_behind_a_stop_belongs_to_the_stopped_turn() -> None:
    data = lines(message("user", "1"), call("a"), event("turn_aborted"), output("a"), message("user", "2"))
    assert statuses(judged(data)) == ["cancelled", "failed"]


def test_reasoning_goes_back_as_the_item_that_it_was() -> None:
    judgement = judged((SAMPLES / "codex_aborted.jsonl").read_bytes())
    (thought,) = events_of(judgement, ModelThinking)
    assert thought.text == "Tests."
    assert thought.provider_options["encrypted_content"] == "b3BhcXVl"
    assert replayed(judgement) == ["user", "thinking", "call:call_1", "result:call_1"]


def test_one_id_for_two_different_calls_is_corruption() -> None:
    judgement = judged(lines(message("user", "go"), call("a", name="shell"), call("a", name="apply_patch")))
    assert verdicts(judgement) == [("a", "corruption", "duplicate_call")]


def test_a_turn_that_the_file_calls_complete_is() -> None:
    data = (message("user", "go"), call("a"), output("a"))
    assert statuses(judged(lines(*data))) == ["failed"]
    assert statuses(judged(lines(*data, event("task_complete")))) == ["completed"]


def test_what_the_screen_showed_is_told_once_a_kind() -> None:
    data = lines(message("user", "go"), event("token_count"), event("token_count"), event("agent_message"))
    judgement = judged(data)
    assert [(found.detail, found.times) for found in judgement.history.findings[:2]] == [
        ("event_msg token_count", 2),
        ("event_msg agent_message", 1),
    ]


def test_tools_that_the_provider_or_a_text_serves_are_calls_too() -> None:
    data = lines(
        message("user", "go"),
        item(type="custom_tool_call", name="apply_patch", call_id="p", input="*** Begin Patch"),
        item(type="custom_tool_call_output", call_id="p", output="done"),
        item(type="local_shell_call", call_id="s", action={"command": ["ls"]}, status="completed"),
        item(type="local_shell_call_output", call_id="s", output="a.txt", status="failed"),
        item(type="web_search_call", id="ws_1", action={"query": "q"}, status="completed"),
        item(type="web_search_call", id="ws_2", action={"query": "q"}, status="in_progress"),
    )
    judgement = judged(data)
    assert [verdict[:2] for verdict in verdicts(judgement)] == [
        ("p", "completed"),
        ("s", "completed"),
        ("ws_1", "completed"),
        ("ws_2", "indeterminate"),
    ]
    assert [response.is_error for response in events_of(judgement, ToolResponded)] == [False, True, False]


def test_lines_and_items_of_an_unknown_kind_are_named() -> None:
    data = lines(
        message("user", "go"),
        item(type="telepathy"),
        item(type="item_reference", id="x"),
        {"type": "rumour", "payload": {}},
        {"type": "response_item"},
        {"payload": {}},
    )
    judgement = judged(data)
    assert [found for found in findings(judgement) if found[0].startswith("unknown")] == [
        ("unknown_type", 2),
        ("unknown_type", 3),
        ("unknown_type", 4),
        ("unknown_shape", 5),
        ("unknown_shape", 6),
    ]


def test_files_of_older_versions_hold_their_items_without_a_wrapper() -> None:
    data = lines(
        {"id": "0198c0de", "timestamp": "2026-01-01T10:00:00Z", "instructions": "Be brief.", "git": {}},
        {"record_type": "state"},
        message("user", "go")["payload"],
        call("a")["payload"],
        {"record_type": "state"},
        output("a")["payload"],
    )
    judgement = judged(data)
    assert (judgement.history.format, judgement.history.session_id) == ("codex", "0198c0de")
    assert replayed(judgement) == ["user", "call:a", "result:a"]
    assert exit_status(judgement) == 0


def test_a_line_that_names_another_session_is_told() -> None:
    def meta(session_id: str) -> dict[str, Any]:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": session_id}}

    assert findings(judged(lines(meta("one"), message("user", "go"), meta("two"), message("user", "more")))) == [
        ("several_sessions", 3)
    ]
    assert findings(judged(lines(meta("one"), message("user", "go"), meta("one")))) == []
    bare = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    assert findings(judged(lines(bare, meta("one")), "codex")) == [("several_sessions", 2)]
    assert findings(judged(lines(meta("one"), message("user", "more"), bare), "codex")) == [("several_sessions", 3)]
