"""Anthropic messages: blocks keep their order, and signed thinking every byte."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from safepoint.domain.events.model import ModelThinking, UserMessage
from safepoint.domain.events.tool import Effect, ToolCalled, ToolResponded
from safepoint.domain.replay.origin import Origin, without_blobs

from .reading import SAMPLES, anthropic, events_of, exit_status, findings, judged, replayed, statuses, user, verdicts

DONE = ("completed", "matching_response")


def use(call_id: str, name: str = "t", args: Any = None, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": name, "input": {} if args is None else args}


def result(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def model(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks), **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_a_user_message_that_mixes_text_and_a_result_becomes_two_facts() -> None:
    """Field report r3-013."""
    mixed = {"role": "user", "content": [text("t"), result("A")]}
    judgement = anthropic(user("go"), model(use("A")), mixed, model(text("done")))
    (response,) = events_of(judgement, ToolResponded)
    messages = events_of(judgement, UserMessage)
    assert (response.call_id, [message.text for message in messages]) == ("A", ["go", "t"])
    assert messages[1].steering, "it came with an answer, so it begins no turn"
    assert replayed(judgement) == ["user", "call:A", "result:A", "user"]
    assert judgement.replay.illegal is None


def test_thinking_and_its_signature_survive_byte_for_byte() -> None:
    """Field report r3-021."""
    data = (SAMPLES / "anthropic_thinking.json").read_bytes()
    recorded = json.loads(data)["messages"][1]["content"][0]
    judgement = judged(data)
    (thought,) = events_of(judgement, ModelThinking)
    shown = next(item for item in judgement.replay.items if item.kind == "thinking")
    for found in (thought, shown):
        assert digest(found.text, found.signature) == digest(recorded["thinking"], recorded["signature"])


def digest(*parts: str | None) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def test_another_account_is_never_shown_signed_thinking_of_an_import() -> None:
    """Field reports r3-020 and r3-021: no foreign file says whose account it was."""
    judgement = judged((SAMPLES / "anthropic_thinking.json").read_bytes())
    opened = judgement.runs[0].read.events[0]
    origin = Origin("anthropic", "claude", None)
    assert (opened.profile.provider, opened.profile.model) == origin[:2]  # type: ignore[attr-defined]
    assert opened.profile.account != origin.account  # type: ignore[attr-defined]
    assert "thinking" not in {item.kind for item in without_blobs(judgement.replay.items)}


def test_thinking_goes_with_the_call_that_is_left_out() -> None:
    """Field report r3-018."""
    thought = {"type": "thinking", "thinking": "Now.", "signature": "c2ln"}
    judgement = anthropic(user("go"), model(use("A")), {"role": "user", "content": [result("A")]}, model(thought))
    assert replayed(judgement) == ["user", "call:A", "result:A"]
    assert len(judgement.replay.trimmed) == 1


def test_redacted_thinking_is_kept_as_the_block_that_it_was() -> None:
    block = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    judgement = anthropic(user("go"), model(block, use("A")), {"role": "user", "content": [result("A")]})
    (thought,) = events_of(judgement, ModelThinking)
    assert (thought.text, thought.provider_options) == ("", block)


def test_a_call_that_the_provider_carried_out_is_answered_in_the_models_role() -> None:
    call = {**use("srv", kind="mcp_tool_use"), "server_name": "wiki"}
    answered = {"type": "mcp_tool_result", "tool_use_id": "srv", "is_error": False, "content": [text("page")]}
    judgement = anthropic(
        user("go"), model(call, use("own")), {"role": "user", "content": [result("own")]}, model(answered, text("done"))
    )
    assert verdicts(judgement) == [("srv", *DONE), ("own", *DONE)]
    assert replayed(judgement) == ["user", "call:srv", "call:own", "result:srv", "result:own"]
    assert events_of(judgement, ToolCalled)[0].provider_options["server_name"] == "wiki"


def test_an_error_says_nothing_of_the_effect() -> None:
    judgement = anthropic(user("go"), model(use("A")), {"role": "user", "content": [result("A", "no", is_error=True)]})
    (response,) = events_of(judgement, ToolResponded)
    assert (response.is_error, response.effect) == (True, Effect.UNKNOWN)
    assert exit_status(judgement) == 0


@pytest.mark.parametrize("said", ["true", 1])
def test_an_answer_that_does_not_say_whether_it_failed_is_told(said: Any) -> None:
    judgement = anthropic(user("go"), model(use("A")), {"role": "user", "content": [result("A", is_error=said)]})
    assert findings(judgement) == [("unknown_shape", 1)]


def test_a_result_of_an_unknown_kind_is_kept_as_it_is() -> None:
    """Field report r3-095: never null."""
    odd = [{"type": "zz", "payload": [1, None]}]
    judgement = anthropic(user("go"), model(use("A")), {"role": "user", "content": [result("A", odd)]})
    assert events_of(judgement, ToolResponded)[0].result == odd


def test_a_block_of_an_unknown_kind_is_named() -> None:
    """Field report r3-095."""
    judgement = anthropic(user("go"), model({"type": "zz"}))
    assert findings(judgement) == [("unknown_type", 1)]
    assert judgement.history.unreadable[0].detail == "a block of type 'zz'"
    assert exit_status(judgement) == 4


def test_a_stop_reason_is_part_of_the_record() -> None:
    assert statuses(anthropic(user("?"), model(text("Tues"), stop_reason="max_tokens"))) == ["failed"]
    assert statuses(anthropic(user("?"), model(text("Tuesday"), stop_reason="end_turn"))) == ["completed"]
