"""Histories become items of the responses API that the official client's own types accept. SPEC section 12, F10."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.adapters.histories.openai_responses import CALL_ID_CHARS_MAX
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import Attachment
from safepoint.domain.replay.items import Item
from safepoint.ports.contract_kit.model_provider import HISTORY

from .items import call, result, said, thought, user
from .official_types import responses_of

REASONING: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look."}],
    "encrypted_content": "gAAAAABo…==",
}


def of_model(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


def of_user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def test_every_kind_of_item_has_its_place() -> None:
    call_2 = {"type": "function_call", "call_id": "c2", "name": "read_file"}
    assert responses_of(*HISTORY) == [
        of_user("Read the files."),
        of_user("Note from the host: one file is new."),
        of_model("I read them."),
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path":"a.txt"}'},
        {**call_2, "arguments": r'{"not_strict_json":"{\"path\": \"b.t"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"content":"hi"}'},
        {"type": "function_call_output", "call_id": "c2", "output": "Error: Not executed: not strict JSON."},
        of_user("Go on."),
    ]


def test_reasoning_goes_back_as_the_item_that_it_was_where_it_stood() -> None:
    """Field report r3-021."""
    history = (
        thought("s", "Look.", options=REASONING),
        said("s", "I look."),
        thought("s", "unsigned"),
        thought("s", "signed by another", "c2ln"),
        thought("s", "", options={"type": "redacted_thinking", "data": "x"}),
        call("s", "a"),
        result("s", "a"),
    )
    items = responses_of(user(), *history)
    assert items[1] == REASONING
    assert [item["type"] for item in items] == [
        "message", "reasoning", "message", "function_call", "function_call_output",
    ]  # fmt: skip


def test_ids_of_items_come_back_with_the_items() -> None:
    kept: Json = {"responses_item": {"id": "msg_1", "status": "incomplete", "phase": "commentary"}}
    items = responses_of(
        user(),
        said("s", "I look.", kept),
        said("s", "Twice.", {"responses_item": {"phase": "commentary"}}),
        call("s", "a", options={"responses_item": {"id": "fc_1", "status": "completed"}}),
        result("s", "a"),
    )
    assert items[1:4] == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            "status": "incomplete",
            "id": "msg_1",
            "phase": "commentary",
        },
        {**of_model("Twice."), "phase": "commentary"},
        {
            "type": "function_call",
            "id": "fc_1",
            "status": "completed",
            "call_id": "a",
            "name": "read_file",
            "arguments": "{}",
        },
    ]


def test_an_empty_message_stays_where_reasoning_needs_it() -> None:
    empty: Json = {"responses_item": {"id": "msg_1", "status": "completed", "content": []}}
    items = responses_of(user(), thought("s", "", options=REASONING), said("s", "", empty), user())
    message = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": []}
    assert items[1:3] == [REASONING, message]


def test_an_item_that_the_provider_carried_out_comes_back_whole() -> None:
    search: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed",
                    "action": {"type": "search", "query": "x"}}  # fmt: skip
    assert responses_of(user(), said("s", "", {"responses_item": search}), said("s", "x"))[1] == search


def test_a_custom_call_stays_one_and_so_does_its_output() -> None:
    options: Json = {"responses_item": {"type": "custom_tool_call", "id": "ctc_1"}}
    history = (user(), call("s", "a", {"input": "*** Begin"}, name="patch", options=options), result("s", "a"))
    assert responses_of(*history)[1:] == [
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "ok"},
    ]


@pytest.mark.parametrize("options", [None, {"anthropic_block": {"caller": {"type": "direct"}}}, "odd", {"x": 1}])
def test_what_another_api_kept_is_not_sent(options: Json) -> None:
    items = responses_of(user(), said("s", "x", options), call("s", "a", options=options), result("s", "a"))
    assert items[1] == of_model("x")
    assert items[2] == {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{}"}


def test_ids_that_the_api_would_refuse_are_replaced_in_call_and_result_alike() -> None:
    history: list[Item] = [user()]
    for step, call_id in (("s1", "same"), ("s2", "same"), ("s3", "x" * 65), ("s4", "x" * 66), ("s5", "")):
        history += [call(step, call_id), result(step, call_id)]
    items = responses_of(*history)
    called = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert called == [item["call_id"] for item in items if item["type"] == "function_call_output"]
    assert len(set(called)) == 5
    assert all(0 < len(sent) <= CALL_ID_CHARS_MAX for sent in called)


def test_attachments_stand_beside_the_text() -> None:
    def attached(media_type: str, uri: str | None) -> Attachment:
        return Attachment(name="a", media_type=media_type, uri=uri)

    shown = user(
        "Look",
        attached("image/png", "https://host/a.png"),
        attached("application/pdf", "https://host/a.pdf"),
        attached("application/pdf", "data:application/pdf;base64,aGk="),
        attached("text/csv", "file:///a.csv"),
    )
    assert responses_of(shown)[0]["content"] == [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "https://host/a.png", "detail": "auto"},
        {"type": "input_file", "file_url": "https://host/a.pdf"},
        {"type": "input_file", "filename": "a", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_text", "text": "[attached: a (text/csv) file:///a.csv]"},
    ]
