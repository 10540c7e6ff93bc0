"""Items of OpenAI's responses API, sent whole each time or held by the provider."""

from __future__ import annotations

import json
from typing import Any

from safepoint.domain.events.model import ModelThinking
from safepoint.domain.events.run import RunOpened
from safepoint.domain.events.tool import ToolCalled

from .reading import (
    SAMPLES,
    codes,
    events_of,
    exit_status,
    findings,
    issues,
    judged,
    lines,
    replayed,
    statuses,
    verdicts,
)

DONE = ("completed", "matching_response")
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "t", "arguments": "{}"}


def output(call_id: str, result: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": result}


def test_reasoning_stands_directly_before_an_item_of_its_own_step() -> None:
    """Field report r3-018."""
    cut_off = {**REASONING, "id": "rs_2"}
    judgement = judged(lines(USER, REASONING, call("a"), call("b"), output("a"), output("b"), cut_off))
    assert replayed(judgement) == ["user", "thinking", "call:a", "call:b", "result:a", "result:b"]
    assert (judgement.replay.illegal, len(judgement.replay.trimmed)) == (None, 1)
    assert len({event.step_id for event in events_of(judgement, ModelThinking)}) == 2


def test_a_conversation_that_the_provider_holds_is_put_together_from_its_requests() -> None:
    judgement = judged((SAMPLES / "responses_held.json").read_bytes())
    assert (verdicts(judgement), statuses(judgement)) == ([("call_1", *DONE)], ["completed"])


def test_a_chain_of_responses_is_put_together_too() -> None:
    first = {"request": {"input": "go"}, "response": {"id": "resp_1", "output": [call("a")]}}
    second = {
        "request": {"previous_response_id": "resp_1", "input": [output("a")]},
        "response": {"id": "resp_2", "output": []},
    }
    stranger = {"request": {"previous_response_id": "resp_9", "input": [output("z")]}, "response": {}}
    judgement = judged(json.dumps({"interactions": [first, second]}).encode(), "openai-responses")
    assert (verdicts(judgement), findings(judgement)) == ([("a", *DONE)], [])
    broken = judged(json.dumps({"interactions": [first, stranger]}).encode(), "openai-responses")
    assert findings(broken)[0][0] == "other_conversation"


def test_parallel_calls_of_which_one_waits_park() -> None:
    judgement = judged((SAMPLES / "responses_lines.jsonl").read_bytes())
    assert verdicts(judgement) == [("call_1", *DONE), ("call_2", "indeterminate", "legacy_dispatch_unknown")]
    assert (codes(judgement), exit_status(judgement)) == ({"dangling_tool_state"}, 3)


def test_a_refusal_is_the_models_word() -> None:
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert statuses(judged(lines(USER, refusal))) == ["completed"]


def test_instructions_are_the_setting() -> None:
    system = {"type": "message", "role": "developer", "content": "Be brief."}
    plain, told = (events_of(judged(lines(*items)), RunOpened)[0] for items in ([USER], [system, USER]))
    assert plain.profile.system_prompt_digest != told.profile.system_prompt_digest


def test_a_call_of_a_remote_server_has_its_answer_in_the_item() -> None:
    remote = {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "ask",
        "server_label": "wiki",
        "arguments": "{}",
        "output": "x",
    }
    failed = {**remote, "id": "mcp_2", "output": None, "error": "gone"}
    judgement = judged(lines(USER, remote, failed), "openai-responses")
    assert [verdict[1:] for verdict in verdicts(judgement)] == [DONE, DONE]
    assert events_of(judgement, ToolCalled)[0].provider_options["server_label"] == "wiki"


def test_an_item_that_stands_twice_alike_is_one_and_otherwise_corruption() -> None:
    """Field report r3-072."""
    alike = judged(lines(USER, REASONING, call("a"), REASONING, output("a")))
    assert (findings(alike), replayed(alike)) == ([("repeated_record", 4)], ["user", "thinking", "call:a", "result:a"])
    other = judged(lines(USER, REASONING, call("a"), {**REASONING, "encrypted_content": "eA=="}, output("a")))
    assert (issues(other), exit_status(other)) == ([("duplicate_event_id", 4)], 4)
