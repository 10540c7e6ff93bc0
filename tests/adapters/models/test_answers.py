"""Answers that somebody else's client brought become the steps that streamed ones would. SPEC F5, F10."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from safepoint.adapters.models.answers import step_from_anthropic, step_from_openai_chat, step_from_openai_responses
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import Usage
from safepoint.domain.identifiers import EventId, StepId, ToolCallId
from safepoint.domain.replay.items import CallItem, Item, ResultItem, TextItem, ThinkingItem, UserItem
from safepoint.domain.tool_arguments import NotStrictJson, parse_arguments
from safepoint.ports.model_step import CallBlock, StepFinished, TextBlock, ThinkingBlock
from safepoint.ports.provider_failures import ProviderFailed, ProviderStreamIncomplete

from ..histories.official_types import anthropic_of, responses_of

CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I read.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}},
                    {"id": "b", "type": "function", "function": {"name": "read_file", "arguments": ""}},
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}
REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        REASONING,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I read.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "a",
            "name": "read_file",
            "arguments": '{"path":"a"}',
            "status": "completed",
        },
    ],
    "usage": {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    },
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
THINKING: Json = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln+/=="}
REDACTED: Json = {"type": "redacted_thinking", "data": "b3BhcXVl"}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        THINKING,
        REDACTED,
        {"type": "text", "text": "I read.", "citations": None},
        {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "output_tokens": 2},
}


@pytest.mark.parametrize("answer", [CHAT, ChatCompletion.model_validate(CHAT)], ids=["json", "object"])
def test_a_chat_completion_is_a_step(answer: object) -> None:
    assert step_from_openai_chat(answer) == StepFinished(
        blocks=(
            ThinkingBlock("Hm."),
            TextBlock("I read."),
            CallBlock("a", "read_file", '{"path":"a"}'),
            CallBlock("b", "read_file", "{}"),
        ),
        finish_reason="tool_calls",
        model="m",
        provider_response_id="chatcmpl-1",
        usage=Usage(input_tokens=5, output_tokens=2),
    )


@pytest.mark.parametrize("answer", [RESPONSE, Response.model_validate(RESPONSE)], ids=["json", "object"])
def test_a_response_is_a_step_and_goes_back_byte_for_byte(answer: object) -> None:
    step = step_from_openai_responses(answer)
    assert (step.finish_reason, step.usage) == ("completed", Usage(input_tokens=5, output_tokens=2))
    assert [(call.provider_call_id, call.arguments_text) for call in step.calls] == [("a", '{"path":"a"}')]
    assert responses_of(*replayed(step))[1:4] == RESPONSE["output"]


@pytest.mark.parametrize("answer", [MESSAGE, Message.model_validate(MESSAGE)], ids=["json", "object"])
def test_a_message_is_a_step_and_goes_back_byte_for_byte(answer: object) -> None:
    """Field report r3-021."""
    step = step_from_anthropic(answer)
    assert (step.finish_reason, step.provider_response_id) == ("tool_use", "msg_1")
    *opaque, text, call = anthropic_of(*replayed(step))[1]["content"]
    assert opaque == [THINKING, REDACTED]
    assert text == {"type": "text", "text": "I read."}
    assert call == MESSAGE["content"][3]


def replayed(step: StepFinished) -> list[Item]:
    """The step after a message, with its calls answered."""
    event, step_id = EventId("e"), StepId("s")
    parts: list[Item] = [UserItem(event, "Hi")]
    results: list[Item] = []
    for block in step.blocks:
        match block:
            case TextBlock():
                parts.append(TextItem(event, step_id, block.text, block.provider_options))
            case ThinkingBlock():
                parts.append(ThinkingItem(event, step_id, block.text, block.signature, block.provider_options))
            case CallBlock():
                call_id, args = ToolCallId(block.provider_call_id or ""), parse_arguments(block.arguments_text)
                assert not isinstance(args, NotStrictJson)
                parts.append(
                    CallItem(
                        event, step_id, call_id, block.tool_name, args.args, provider_options=block.provider_options
                    )
                )
                results.append(ResultItem(event, step_id, call_id, block.tool_name, "ok", is_error=False))
    return [*parts, *results]


def changed(answer: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {**answer, **members}


@pytest.mark.parametrize(
    ("step_from", "answer"),
    [
        (step_from_openai_chat, changed(CHAT, choices=[])),
        (step_from_openai_chat, changed(CHAT, choices=[{**CHAT["choices"][0], "finish_reason": None}])),
        (step_from_openai_responses, changed(RESPONSE, status="in_progress")),
        (step_from_openai_responses, changed(RESPONSE, status=None)),
        (step_from_openai_responses, changed(RESPONSE, output=[{"type": "function_call", "call_id": "a"}])),
        (step_from_anthropic, changed(MESSAGE, stop_reason=None)),
    ],
)
def test_what_is_not_finished_is_no_step(step_from: Any, answer: object) -> None:
    with pytest.raises(ProviderStreamIncomplete):
        step_from(answer)


@pytest.mark.parametrize(
    ("step_from", "answer"),
    [
        (step_from_openai_chat, 7),
        (step_from_openai_chat, changed(CHAT, choices=[{"index": 0, "message": {"content": 7}}])),
        (step_from_openai_responses, changed(RESPONSE, status="failed", error={"message": "on fire"})),
        (step_from_openai_responses, changed(RESPONSE, output=[{"type": "computer_call", "call_id": "a"}])),
        (step_from_anthropic, changed(MESSAGE, content=[{"type": "zz"}])),
        (step_from_anthropic, changed(MESSAGE, content=[THINKING])),
        (step_from_anthropic, "a text"),
    ],
)
def test_what_is_no_answer_fails(step_from: Any, answer: object) -> None:
    with pytest.raises(ProviderFailed):
        step_from(answer)


def test_a_call_that_a_response_broke_off_in_is_no_call_with_arguments() -> None:
    """Field report r3-106."""
    cut = {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{}", "status": "incomplete"}
    reason = {"reason": "max_output_tokens"}
    step = step_from_openai_responses(changed(RESPONSE, output=[cut], status="incomplete", incomplete_details=reason))
    assert step.finish_reason == "max_output_tokens"
    assert isinstance(parse_arguments(step.calls[0].arguments_text), NotStrictJson)


def test_custom_calls_and_work_of_the_provider_go_back_as_they_were() -> None:
    items: list[Any] = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "patch", "input": "*** Begin"},
        {
            "type": "message",
            "id": "msg_2",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
    ]
    step = step_from_openai_responses(changed(RESPONSE, output=items))
    assert step.text == "No."
    assert responses_of(*replayed(step))[1:4] == items
