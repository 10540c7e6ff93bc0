"""OpenAI chat messages: calls and answers are paired whatever providers do to their ids, and nothing is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from safepoint.domain.events.model import UserMessage
from safepoint.domain.events.run import RunOpened
from safepoint.domain.events.tool import ToolCalled, ToolResponded

from .reading import (
    answer,
    calling,
    chat,
    codes,
    events_of,
    exit_status,
    findings,
    issues,
    judged,
    lines,
    replayed,
    said,
    statuses,
    user,
    verdicts,
)

DONE = ("completed", "matching_response")


def test_parallel_calls_keep_their_order_whatever_the_order_of_their_answers() -> None:
    judgement = chat(user("go"), calling(("a", "t", {}), ("b", "t", {})), answer("b"), answer("a"))
    assert verdicts(judgement) == [("a", *DONE), ("b", *DONE)]
    assert replayed(judgement) == ["user", "call:a", "call:b", "result:a", "result:b"]
    assert (exit_status(judgement), judgement.replay.illegal) == (0, None)


def test_a_call_without_answer_parks() -> None:
    judgement = chat(user("go"), calling(("a", "t", {})))
    assert verdicts(judgement) == [("a", "indeterminate", "legacy_dispatch_unknown")]
    assert (codes(judgement), exit_status(judgement)) == ({"dangling_tool_state"}, 3)
    assert judgement.replay.blocked == "tool_recovery_unsettled"


def test_a_call_that_was_never_answered_parks_although_the_conversation_went_on() -> None:
    judgement = chat(user("go"), calling(("a", "t", {})), user("hello?"), said("I am here."))
    assert codes(judgement) >= {"dangling_tool_state"}
    assert statuses(judgement) == ["failed"]
    assert [message.steering for message in events_of(judgement, UserMessage)] == [False, True]


def test_an_answer_to_no_call_is_corruption_and_never_dropped() -> None:
    """Field report r3-006."""
    judgement = chat(user("go"), calling(("c1", "t", {})), answer("c2"))
    assert verdicts(judgement) == [
        ("c1", "indeterminate", "legacy_dispatch_unknown"),
        ("c2", "corruption", "orphan_response"),
    ]
    assert (issues(judgement), exit_status(judgement)) == ([("orphan_response", 1)], 4)


def blocks(block_args: dict[str, Any], field_args: dict[str, Any]) -> dict[str, Any]:
    """One message that has its call as a content block and in the separate field."""
    block = {"type": "tool_use", "id": "c1", "name": "t", "input": block_args}
    return {**calling(("c1", "t", field_args)), "content": [block]}


def test_a_call_that_stands_as_block_and_as_field_is_one_call() -> None:
    """Field report r3-025."""
    judgement = chat(user("go"), blocks({"a": 1, "b": 2.0}, {"b": 2, "a": 1}), answer("c1"))
    assert verdicts(judgement) == [("c1", *DONE)]
    assert (findings(judgement), exit_status(judgement)) == ([("repeated_call", 1)], 0)


def test_block_and_field_that_differ_are_corruption() -> None:
    """Field report r3-025."""
    judgement = chat(user("go"), blocks({"a": 1}, {"a": 2}), answer("c1"))
    assert verdicts(judgement) == [("c1", "corruption", "duplicate_call")]
    assert exit_status(judgement) == 4


def test_two_calls_of_one_step_with_one_id_are_reported_and_park() -> None:
    """Field report r3-027: the tool's own name as the id of two calls."""
    judgement = chat(user("go"), calling(("get", "get", {"u": 1}), ("get", "get", {"u": 2})), answer("get"))
    assert verdicts(judgement) == [("get", "corruption", "duplicate_call")]
    same = chat(user("go"), calling(("get", "get", {}), ("get", "get", {})), answer("get"), answer("get"))
    assert verdicts(same) == [("get", "corruption", "duplicate_call")]


def test_an_id_that_is_used_again_in_a_later_step_names_another_call() -> None:
    judgement = chat(
        user("go"), calling(("c", "t", {"n": 1})), answer("c", "1"), calling(("c", "t", {"n": 1})), answer("c", "2")
    )
    calls = events_of(judgement, ToolCalled)
    assert [call.provider_call_id for call in calls] == ["c", "c"]
    assert len({call.call_id for call in calls}) == 2
    assert [response.result for response in events_of(judgement, ToolResponded)] == ["1", "2"]
    assert (findings(judgement), exit_status(judgement)) == ([("reused_call_id", 1)], 0)


def test_calls_without_ids_get_some_and_are_answered_in_order() -> None:
    judgement = chat(user("go"), calling(("", "a", {}), ("", "b", {})), answer("", "1"), answer("", "2"))
    responses = events_of(judgement, ToolResponded)
    assert [(response.tool_name, response.result) for response in responses] == [("a", "1"), ("b", "2")]
    assert [call.call_id for call in events_of(judgement, ToolCalled)] == [one.call_id for one in responses]
    assert findings(judgement) == [("made_call_id", 1)] * 2


def test_an_answer_that_stands_twice_alike_is_one_and_otherwise_corruption() -> None:
    alike = chat(user("go"), calling(("c", "t", {})), answer("c", "x"), answer("c", "x"))
    assert (verdicts(alike), findings(alike)) == ([("c", *DONE)], [("repeated_result", 1)])
    other = chat(user("go"), calling(("c", "t", {})), answer("c", "x"), answer("c", "y"))
    assert verdicts(other) == [("c", "corruption", "duplicate_response")]


def test_a_tool_name_that_no_provider_takes_is_corruption_and_all_else_stays_readable() -> None:
    """Field report r3-024: it is never guessed or rewritten."""
    judgement = chat(user("go"), calling(("bad", "read\0file", {}), ("good", "read_file", {})), answer("good"))
    assert ("good", *DONE) in verdicts(judgement)
    assert findings(judgement) == [("invalid_tool_name", 1)]
    assert (issues(judgement), exit_status(judgement)) == ([("semantic_lane_conflict", 1)], 4)
    assert [call.tool_name for call in events_of(judgement, ToolCalled)] == ["read_file"]


@pytest.mark.parametrize(
    ("text", "args", "args_text"),
    [
        ('{"path": "a"}', {"path": "a"}, None),
        ('{"path": "a", "content": "line1', None, '{"path": "a", "content": "line1'),
        ('{"id": 107505301260286111}', None, '{"id": 107505301260286111}'),
        ('{"a": 1, "a": 2}', None, '{"a": 1, "a": 2}'),
        ("", None, ""),
    ],
)
def test_arguments_are_read_strictly_and_never_repaired(text: str, args: Any, args_text: str | None) -> None:
    """Field reports r3-106 and r3-101."""
    message = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "t", "arguments": text}}]}
    (call,) = events_of(chat(user("go"), message), ToolCalled)
    assert (call.args, call.args_text) == (args, args_text)


def test_a_result_whose_numbers_no_double_holds_is_kept_as_its_text() -> None:
    judgement = chat(user("go"), calling(("c", "t", {})), answer("c", [{"id": 107505301260286111}]))
    (response,) = events_of(judgement, ToolResponded)
    assert response.result == '[{"id": 107505301260286111}]'


def test_half_a_character_is_replaced_and_told() -> None:
    data = b'{"role": "user", "content": "cut \\ud83d"}\n'
    judgement = judged(data, "openai-chat")
    (message,) = events_of(judgement, UserMessage)
    assert message.text == "cut \N{REPLACEMENT CHARACTER}"
    assert findings(judgement) == [("text_changed", 1)]


def test_a_long_result_is_cut_with_its_length_and_digest() -> None:
    judgement = chat(user("go"), calling(("c", "t", {})), answer("c", "a" * 600_000))
    (response,) = events_of(judgement, ToolResponded)
    assert (len(response.result) < 600_000, response.original_length) == (True, 600_000)
    assert response.code == "result_too_large"


def test_each_turn_is_a_run_that_was_given_the_ones_before() -> None:
    judgement = chat(user("1"), said("one"), user("2"), calling(("c", "t", {})), answer("c"), said("two"), user("3"))
    assert statuses(judgement) == ["completed", "completed", "failed"]
    contexts = [opened.context for opened in events_of(judgement, RunOpened)]
    assert contexts[0] is None
    before = [run.read for run in judgement.runs[:-1]]
    assert [context.previous.digest for context in contexts[1:]] == [run.sealed[-1].digest for run in before]
    assert replayed(judgement) == ["user", "text", "user", "call:c", "result:c", "text", "user"]
    assert exit_status(judgement) == 0


def test_an_answer_that_was_cut_by_the_length_limit_is_no_end() -> None:
    cut = {**said("It is Tues"), "finish_reason": "length"}
    judgement = chat(user("?"), cut)
    assert statuses(judgement) == ["failed"]
    assert statuses(chat(user("?"), {**cut, "finish_reason": "stop"})) == ["completed"]


def test_instructions_before_the_conversation_are_its_setting_and_later_ones_are_told() -> None:
    system = {"role": "system", "content": "Be brief."}
    judgement = chat(system, user("?"), said("!"), {"role": "developer", "content": "Be briefer."}, user("??"))
    other = chat({"role": "system", "content": "Be long."}, user("?"))
    opened, different = events_of(judgement, RunOpened)[0], events_of(other, RunOpened)[0]
    assert opened.profile.system_prompt_digest != different.profile.system_prompt_digest
    assert findings(judgement) == [("not_conversation", 1)]


def test_an_image_leaves_its_kind_and_digest() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    judgement = chat({"role": "user", "content": [{"type": "text", "text": "Look."}, image, linked]})
    (message,) = events_of(judgement, UserMessage)
    kept, reference = message.attachments
    assert (kept.media_type, kept.uri) == ("image/png", None)
    assert kept.digest == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert (reference.uri, reference.digest) == ("https://example.org/a.png", None)
    assert findings(judgement) == [("attachment_not_kept", 1)]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"content": "who?"}, "unknown_shape"),
        ({"role": "narrator", "content": "who?"}, "unknown_type"),
        ({"role": "user", "content": 7}, "unknown_shape"),
        ({"role": "user", "content": [{"type": "hologram"}]}, "unknown_type"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}, "unknown_shape"),
        ({"role": "assistant", "tool_calls": {"id": "c"}}, "unknown_shape"),
        ({"role": "assistant", "content": ["plain"]}, "unknown_shape"),
        ({"role": "tool", "tool_call_ids": ["a", "b"], "content": "x"}, "unknown_shape"),
    ],
)
def test_a_message_that_cannot_be_read_is_told_and_parks(message: dict[str, Any], code: str) -> None:
    judgement = judged(lines(user("hello"), message), "openai-chat")
    assert (findings(judgement), exit_status(judgement)) == ([(code, 2)], 4)
    assert "source_run_unreadable" in codes(judgement)


def test_the_last_request_with_its_response_is_the_conversation() -> None:
    first = {"request": {"messages": [user("go")]}, "response": {"choices": [{"message": calling(("c", "t", {}))}]}}
    messages = [user("go"), calling(("c", "t", {})), answer("c")]
    last = {"request": {"messages": messages}, "response": {"choices": [{"message": said("Done.")}]}}
    judgement = judged(json.dumps({"interactions": [first, last]}).encode())
    assert (verdicts(judgement), statuses(judgement)) == ([("c", *DONE)], ["completed"])


def test_a_request_that_repeats_another_value_is_of_another_conversation() -> None:
    def request(flag: Any) -> dict[str, Any]:
        return {"request": {"messages": [user("go"), {**said("x"), "flag": flag}, user("more")]}}

    def told(*flags: Any) -> list[tuple[str, int]]:
        return findings(judged(json.dumps({"interactions": [request(flag) for flag in flags]}).encode(), "openai-chat"))

    assert told(1, True) == [("other_conversation", 1)]
    assert told(True, True) == []


def test_another_conversation_in_the_file_is_told() -> None:
    exchanges = [{"request": {"messages": [user(text)]}, "response": {}} for text in ("one", "two")]
    judgement = judged(json.dumps({"interactions": exchanges}).encode(), "openai-chat")
    assert findings(judgement) == [("other_conversation", 1)]
    assert [message.text for message in events_of(judgement, UserMessage)] == ["two"]


def test_the_older_function_call_is_paired_by_its_name() -> None:
    older = {"role": "assistant", "content": None, "function_call": {"name": "t", "arguments": "{}"}}
    judgement = chat(user("go"), older, {"role": "function", "name": "t", "content": "ok"})
    assert [verdict[1:] for verdict in verdicts(judgement)] == [DONE]


@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "assistant"}, {"role": "assistant", "content": None}])
def test_a_message_without_content_is_told_with_its_line(message: dict[str, Any]) -> None:
    judgement = judged(lines(user("go"), said("Done."), user("and?"), message))
    assert ("unknown_shape", 4) in findings(judgement)
    assert exit_status(judgement) == 4


def test_a_message_that_says_nothing_is_left_out_and_told() -> None:
    assert ("not_conversation", 2) in findings(judged(lines(user("go"), said(""), said("Done."))))


def test_a_call_without_arguments_is_told() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "t"}}]}
    assert findings(judged(lines(user("go"), call, answer("a"), said("Done.")))) == [("unknown_shape", 2)]


@pytest.mark.parametrize("name", ["f g", "t\u00fcr", "a/b", ""])
def test_a_tool_name_outside_of_what_any_provider_takes_is_corruption(name: str) -> None:
    judgement = judged(lines(user("go"), calling(("a", name, {})), answer("a"), said("Done.")))
    assert findings(judgement) == [("invalid_tool_name", 2)]
    assert exit_status(judgement) == 4
