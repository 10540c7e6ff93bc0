"""Histories become Anthropic messages that the official client's own types accept. SPEC section 12, F10."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.adapters.histories.anthropic import BLANK, CALL_ID_CHARS_MAX, anthropic_tools
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import Attachment
from safepoint.domain.replay.items import Item
from safepoint.ports.contract_kit.model_provider import HISTORY, READ_FILE

from .items import call, host, result, said, thought, user
from .official_types import ANTHROPIC_TOOLS, accepted, anthropic_of

SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk+/=="
REDACTED: Json = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def blocks(*parts: Item) -> list[Any]:
    """The blocks of a step that the user's message came before."""
    messages = anthropic_of(user(), *parts)
    return messages[1]["content"] if len(messages) > 1 else []


def test_every_kind_of_item_has_its_place() -> None:
    assert anthropic_of(*HISTORY) == [
        {"role": "user", "content": [text("Read the files."), text("Note from the host: one file is new.")]},
        {
            "role": "assistant",
            "content": [
                text("I read them."),
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.txt"}},
                {"type": "tool_use", "id": "c2", "name": "read_file", "input": {"not_strict_json": '{"path": "b.t'}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": '{"content":"hi"}'},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": "Not executed: not strict JSON.",
                    "is_error": True,
                },
                text("Go on."),
            ],
        },
    ]


def test_roles_alternate_and_results_open_the_message_after_their_calls() -> None:
    """A message that arrived within a step, and one of the host, stand behind the results."""
    messages = anthropic_of(
        user(), user(), call("s1", "a"), call("s1", "b"), result("s1", "a"), result("s1", "b"), host(), user(),
        said("s2", "One."), said("s3", "Two."),
    )  # fmt: skip
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text", "text"]
    assert messages[3]["content"] == [text("One."), text("Two.")]


def test_thinking_goes_back_byte_for_byte_where_it_stood() -> None:
    """Field report r3-021."""
    assert blocks(
        thought("s", "First…\n ", SIGNATURE),
        said("s", "I look."),
        thought("s", "", options=REDACTED),
        thought("s", "", ""),
        call("s", "a"),
        result("s", "a"),
    )[:4] == [
        {"type": "thinking", "thinking": "First…\n ", "signature": SIGNATURE},
        text("I look."),
        REDACTED,
        {"type": "thinking", "thinking": "", "signature": ""},
    ]


@pytest.mark.parametrize(
    "foreign",
    [
        thought("s", "unsigned"),
        thought("s", "of another", options={"type": "reasoning", "id": "rs_1", "summary": []}),
    ],
)
def test_thinking_that_this_api_never_signed_is_left_out(foreign: Item) -> None:
    assert blocks(foreign, said("s", "Done.")) == [text("Done.")]


def test_thinking_goes_where_nothing_that_is_taken_follows_it() -> None:
    assert blocks(thought("s", "Now.", SIGNATURE), said("s", " \n")) == []
    assert anthropic_of(user("a"), thought("s", "Now.", SIGNATURE), said("s", " "), user("b")) == [
        {"role": "user", "content": [text("a"), text("b")]}
    ]


def test_a_blank_message_is_spelled_because_the_api_refuses_it() -> None:
    assert anthropic_of(user(" \n")) == [{"role": "user", "content": [text(BLANK)]}]


def test_what_only_this_api_understands_comes_back_with_its_block() -> None:
    cited: Json = {"citations": [{"type": "char_location", "cited_text": "x", "document_index": 0,
                                  "document_title": None, "start_char_index": 0, "end_char_index": 1}]}  # fmt: skip
    search: Json = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    assert blocks(
        said("s", "", {"anthropic_block": search}),
        said("s", "", {"anthropic_block": found}),
        said("s", "It says x.", {"anthropic_block": cited}),
        call("s", "a", options={"anthropic_block": {"caller": {"type": "direct"}}}),
        result("s", "a"),
    ) == [
        search,
        found,
        {**text("It says x."), **cited},  # type: ignore[dict-item]
        {"type": "tool_use", "id": "a", "name": "read_file", "input": {}, "caller": {"type": "direct"}},
    ]


def test_what_another_api_kept_is_not_sent() -> None:
    options: Json = {"responses_item": {"id": "fc_1", "status": "completed"}}
    (made, _) = blocks(call("s", "a", options=options), said("s", "x", options), result("s", "a"))
    assert made == {"type": "tool_use", "id": "a", "name": "read_file", "input": {}}


@pytest.mark.parametrize("args", [[1], "text", 7, True])
def test_arguments_that_are_no_object_are_put_into_one(args: Json) -> None:
    assert blocks(call("s", "a", args), result("s", "a"))[0]["input"] == {"not_an_object": args}


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        ({"b": 1, "a": [1.0]}, '{"a":[1],"b":1}'),
        ([], "[]"),
        ([text("a"), text("b")], [text("a"), text("b")]),
        ([text("a"), {"type": "zz"}], '[{"text":"a","type":"text"},{"type":"zz"}]'),
        ([text(" ")], '[{"text":" ","type":"text"}]'),
        ([{"type": "image", "data": "aGk="}], '[{"data":"aGk=","type":"image"}]'),
        ([{"type": []}, 7], '[{"type":[]},7]'),
    ],
)
def test_a_result_is_its_text_its_blocks_or_its_json(value: Json, content: Json) -> None:
    """Field report r3-095: never null."""
    last = anthropic_of(user(), call("s", "a"), result("s", "a", value))[-1]["content"][0]
    assert last == {"type": "tool_result", "tool_use_id": "a", "content": content}


def test_an_error_is_flagged_and_never_says_nothing() -> None:
    last = anthropic_of(user(), call("s", "a"), result("s", "a", "", is_error=True))[-1]["content"][0]
    assert (last["is_error"], last["content"]) == (True, "Error")


def test_ids_that_the_api_would_refuse_are_replaced_in_call_and_result_alike() -> None:
    history: list[Item] = [user()]
    for step, call_id in (("s1", "same"), ("s2", "same"), ("s3", "x" * 65), ("s4", "a.b"), ("s5", "ü"), ("s6", "a\n")):
        history += [call(step, call_id), result(step, call_id)]
    messages = anthropic_of(*history)
    called = [m["content"][0]["id"] for m in messages if m["role"] == "assistant"]
    answered = [m["content"][0]["tool_use_id"] for m in messages[1:] if m["role"] == "user"]
    assert called == answered
    assert called[0] == "same"
    assert len(set(called)) == 6
    assert all(len(sent) <= CALL_ID_CHARS_MAX and sent.replace("_", "").isalnum() for sent in called)


def test_attachments_stand_beside_the_text() -> None:
    def attached(media_type: str, uri: str | None) -> Attachment:
        return Attachment(name="a", media_type=media_type, uri=uri)

    shown = user(
        "Look",
        attached("image/png", "https://host/a.png"),
        attached("image/png", "data:image/png;base64,aGk="),
        attached("application/pdf", "https://host/a.pdf"),
        attached("image/png", "http://host/a.png"),
        attached("image/tiff", "https://host/a.tiff"),
        attached("image/png", None),
    )
    assert anthropic_of(shown)[0]["content"] == [
        text("Look"),
        {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "document", "source": {"type": "url", "url": "https://host/a.pdf"}},
        text("[attached: a (image/png) http://host/a.png]"),
        text("[attached: a (image/tiff) https://host/a.tiff]"),
        text("[attached: a (image/png)]"),
    ]


def test_tools_have_an_object_for_a_schema() -> None:
    tools: list[Any] = accepted(list(anthropic_tools([READ_FILE])), ANTHROPIC_TOOLS)
    assert tools == [{"name": "read_file", "description": "Reads a file.", "input_schema": dict(READ_FILE.schema)}]
    assert anthropic_tools([READ_FILE._replace(schema={})])[0]["input_schema"] == {"type": "object"}
