"""Histories become messages that the official client's own types accept. SPEC section 12."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.adapters.histories.openai_chat import CALL_ID_CHARS_MAX, openai_chat_tools, to_openai_chat
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import Attachment
from safepoint.domain.identifiers import EventId, StepId
from safepoint.domain.replay.items import HostItem, Item, TextItem, ThinkingItem, UserItem
from safepoint.ports.contract_kit.model_provider import HISTORY, READ_FILE

from .items import call, result, user
from .official_types import CHAT, CHAT_TOOLS, accepted


def messages_of(*history: Item, system_prompt: str = "") -> list[Any]:
    """The messages, which the client's own types accept."""
    return accepted(list(to_openai_chat(history, system_prompt=system_prompt)), CHAT)


def test_every_kind_of_item_has_its_place() -> None:
    assert messages_of(*HISTORY, system_prompt="Be brief.") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read the files."},
        {"role": "user", "content": "Note from the host: one file is new."},
        {
            "role": "assistant",
            "content": "I read them.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a.txt"}'}},
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": r'{"not_strict_json":"{\"path\": \"b.t"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"content":"hi"}'},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: Not executed: not strict JSON."},
        {"role": "user", "content": "Go on."},
    ]


def test_each_step_is_one_message_with_all_its_results_before_the_next() -> None:
    messages = messages_of(
        user(),
        call("s1", "a", {}),
        call("s1", "b", {}),
        result("s1", "a"),
        result("s1", "b"),
        call("s2", "c", {}),
        result("s2", "c"),
        TextItem(EventId("t"), StepId("s3"), "Done."),
    )
    assert [(message["role"], len(message.get("tool_calls", ()))) for message in messages] == [
        ("user", 0),
        ("assistant", 2),
        ("tool", 0),
        ("tool", 0),
        ("assistant", 1),
        ("tool", 0),
        ("assistant", 0),
    ]
    assert messages[1]["content"] is None


def test_a_message_that_arrived_within_a_step_stands_after_its_results() -> None:
    note = HostItem(EventId("h"), "Note", "host_note")
    roles = [m["role"] for m in messages_of(user(), call("s1", "a", {}), result("s1", "a"), note)]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("value", "text"),
    [("plain", "plain"), (None, "null"), ({"b": 1, "a": [1.0]}, '{"a":[1],"b":1}'), (True, "true"), ("", "")],
)
def test_a_result_is_its_text_or_its_json(value: Json, text: str) -> None:
    assert messages_of(user(), call("s", "a", {}), result("s", "a", value))[-1]["content"] == text


def test_ids_that_the_api_would_refuse_are_replaced_in_call_and_result_alike() -> None:
    history: list[Item] = [user()]
    for step, call_id in (("s1", "same"), ("s2", "same"), ("s3", "x" * 41), ("s4", "x" * 42), ("s5", "")):
        history += [call(step, call_id, {}), result(step, call_id)]
    messages = messages_of(*history)
    called = [m["tool_calls"][0]["id"] for m in messages if m["role"] == "assistant"]
    assert called == [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert called[0] == "same"
    assert len(set(called)) == 5
    assert all(0 < len(sent) <= CALL_ID_CHARS_MAX for sent in called)
    assert messages == messages_of(*history)


def test_reasoning_is_left_out_whole_and_leaves_no_empty_message() -> None:
    thinking = ThinkingItem(EventId("th"), StepId("s1"), "secret thought", "signature")
    assert messages_of(user(), thinking) == [{"role": "user", "content": "Hi"}]


def test_attachments_stand_beside_the_text() -> None:
    image = Attachment(name="a.png", media_type="image/png", uri="https://host/a.png")
    sheet = Attachment(name="a.csv", media_type="text/csv", uri="file:///a.csv")
    bare = Attachment(name="b.png", media_type="image/png")
    assert messages_of(UserItem(EventId("u"), "Look", (image, sheet, bare)))[0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
        {"type": "text", "text": "[attached: a.csv (text/csv) file:///a.csv]"},
        {"type": "text", "text": "[attached: b.png (image/png)]"},
    ]


def test_tools_are_functions_with_their_schema() -> None:
    tools: list[Any] = accepted(list(openai_chat_tools([READ_FILE])), CHAT_TOOLS)
    assert tools[0]["function"] == {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": dict(READ_FILE.schema),
    }


CALL_IDS = st.text(min_size=0, max_size=50)


@given(st.lists(st.lists(CALL_IDS, min_size=1, max_size=3, unique=True), max_size=5))
def test_any_history_of_parallel_calls_is_answered_id_by_id(steps: list[list[str]]) -> None:
    history: list[Item] = [user()]
    for place, ids in enumerate(steps):
        history += [call(str(place), call_id, {}) for call_id in ids]
        history += [result(str(place), call_id, f"{place}/{call_id}") for call_id in ids]
    messages = messages_of(*history)
    seen: set[str] = set()
    position = 1
    for place, ids in enumerate(steps):
        sent = [wanted["id"] for wanted in messages[position]["tool_calls"]]
        results = messages[position + 1 : position + 1 + len(ids)]
        assert [m["tool_call_id"] for m in results] == sent
        assert [m["content"] for m in results] == [f"{place}/{call_id}" for call_id in ids]
        assert not seen & set(sent)
        assert len(set(sent)) == len(sent)
        seen |= set(sent)
        position += 1 + len(ids)
    assert position == len(messages)
