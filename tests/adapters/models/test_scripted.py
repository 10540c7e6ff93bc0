"""The scripted provider: which step it plays, what it logs, and which histories it refuses. Issue 2, point 5."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.models import scripted
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.domain.identifiers import EventId, RunId, StepId, ToolCallId
from safepoint.domain.replay.items import CallItem, Item, ResultItem, TextItem, UserItem
from safepoint.ports.contract_kit.model_provider import failure_of, finished_steps, parts_of, request, run
from safepoint.ports.model_provider import ProviderProfile
from safepoint.ports.model_step import (
    CallBlock,
    ModelPart,
    StepFinished,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
)
from safepoint.ports.provider_failures import ProviderFailed, ProviderRefusedBeforeOutput, ProviderStreamIncomplete

SCRIPT: dict[str, Any] = {
    "calls_log": "calls.jsonl",
    "steps": [
        {
            "text": "I write two files.",
            "thinking": "Two.",
            "calls": [{"tool": "write", "args": {"b": 1, "a": "é"}}, {"tool": "write"}],
        },
        {"calls": [{"tool": "write", "args_text": '{"a": ', "id": ""}]},
        {"text": "All written.", "finish": "length"},
    ],
}
USER = UserItem(EventId("u1"), "Write.")


def step_items(step: str, *call_ids: str) -> list[Item]:
    calls: list[Item] = [CallItem(EventId("c"), StepId(step), ToolCallId(name), "write", {}) for name in call_ids]
    return calls + [ResultItem(EventId("r"), StepId(step), ToolCallId(name), "write", "ok", False) for name in call_ids]


FIRST = step_items("s1", "x1", "x2")
SECOND = step_items("s2", "x3")


def model_for(tmp_path: Path, **changes: object) -> ScriptedModel:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({**SCRIPT, **changes}))
    return ScriptedModel.from_file(path)


def ask(model: ScriptedModel, *history: Item) -> list[ModelPart]:
    return run(lambda: parts_of(model, request(history)), model)


def step_after(tmp_path: Path, *history: Item) -> StepFinished:
    (step,) = finished_steps(ask(model_for(tmp_path), USER, *history))
    return step


def logged(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]


def test_the_first_step_is_played_to_a_history_without_steps(tmp_path: Path) -> None:
    assert step_after(tmp_path) == StepFinished(
        blocks=(
            ThinkingBlock("Two."),
            TextBlock("I write two files."),
            CallBlock("call_1_1", "write", '{"a":"é","b":1}'),
            CallBlock("call_1_2", "write", "{}"),
        ),
        finish_reason="tool_calls",
        model="scripted",
        provider_response_id="scripted_1",
    )


def test_a_continuation_goes_on_where_its_history_ends(tmp_path: Path) -> None:
    assert step_after(tmp_path, *FIRST).blocks == (CallBlock("", "write", '{"a": '),)
    assert step_after(tmp_path, *FIRST, *SECOND).finish_reason == "length"


def test_steps_are_counted_over_all_turns_and_after_the_last_one_it_is_done(tmp_path: Path) -> None:
    last = TextItem(EventId("t"), StepId("s3"), "All written.")
    step = step_after(tmp_path, *FIRST, *SECOND, last, UserItem(EventId("u2"), "More?"))
    assert (step.text, step.finish_reason, step.calls) == ("Done.", "stop", ())


def test_text_and_thinking_come_in_several_deltas(tmp_path: Path) -> None:
    parts = ask(model_for(tmp_path), USER)
    texts = [part.text for part in parts if isinstance(part, TextDelta)]
    assert len(texts) == scripted.DELTAS_PER_BLOCK
    assert "".join(texts) == "I write two files."
    assert "".join(part.text for part in parts if isinstance(part, ThinkingDelta)) == "Two."


def test_each_request_is_one_line_with_what_it_was_shown(tmp_path: Path) -> None:
    model = model_for(tmp_path)
    ask(model, USER)
    ask(model, USER, *FIRST)
    ask(model, USER, *FIRST, *SECOND, TextItem(EventId("t"), StepId("s3"), "All written."))
    one = {"pid": os.getpid(), "run_id": RunId("run-of-the-kit"), "request_id": "request-1"}
    assert logged(tmp_path) == [
        {**one, "step": 0, "model_steps": 0, "calls": [], "results": []},
        {**one, "step": 1, "model_steps": 1, "calls": ["x1", "x2"], "results": ["x1", "x2"]},
        {**one, "step": None, "model_steps": 3, "calls": ["x1", "x2", "x3"], "results": ["x1", "x2", "x3"]},
    ]


def test_the_line_is_synced_before_anything_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(len(logged(tmp_path))))
    model = model_for(tmp_path)

    async def first_part() -> list[int]:
        stream = model.stream(request((USER,)), scripted_proof())
        await anext(stream)
        counts = list(synced)
        await stream.aclose()
        return counts

    assert run(first_part, model) == [1]


def scripted_proof() -> Any:
    return type("Proof", (), {"run_id": RunId("r")})()


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ([], "empty"),
        ([*FIRST], "first_not_from_user"),
        ([USER, *FIRST[:3]], "call_not_answered"),
        ([USER, *FIRST[:3], USER, FIRST[3]], "call_not_answered"),
        ([USER, *FIRST, FIRST[3]], "call_answered_twice"),
        ([USER, *FIRST, SECOND[1]], "result_without_call"),
        ([USER, *FIRST, *step_items("s2", "x1")], "call_id_repeated"),
    ],
)
def test_a_history_that_strict_providers_refuse_is_refused_and_logged_so(
    tmp_path: Path, history: list[Item], reason: str
) -> None:
    model = model_for(tmp_path)
    with pytest.raises(ProviderFailed, match=reason) as raised:
        ask(model, *history)
    assert raised.value.status_code == 400
    (line,) = logged(tmp_path)
    assert line["refused"].startswith(reason)


def test_the_first_requests_of_a_process_can_be_refused(tmp_path: Path) -> None:
    model = model_for(tmp_path, fail_first=1)
    with pytest.raises(ProviderRefusedBeforeOutput) as raised:
        ask(model, USER)
    assert raised.value.status_code == 503
    assert len(finished_steps(ask(model, USER))) == 1
    assert [line.get("refused") for line in logged(tmp_path)] == ["503", None]


def test_a_step_can_be_dropped_after_its_text(tmp_path: Path) -> None:
    model = model_for(tmp_path, drop_after=1)

    async def drops() -> list[ModelPart]:
        parts, failure = await failure_of(model)
        assert isinstance(failure, ProviderStreamIncomplete)
        return parts

    model = model_for(tmp_path, drop_after=2, steps=[{"text": "one"}, {"text": "two", "calls": [{"tool": "write"}]}])
    parts = run(drops, model)  # the history of the contract has one step
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "two"
    assert finished_steps(parts) == []


def test_a_log_that_cannot_be_written_answers_nothing(tmp_path: Path) -> None:
    """Otherwise the count that others read would be wrong."""
    model = model_for(tmp_path)
    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(ProviderFailed, match="cannot be written"):
        ask(model, USER)


def test_without_a_log_nothing_is_written(tmp_path: Path) -> None:
    model = model_for(tmp_path, calls_log=None)
    ask(model, USER)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.json"]


def test_the_profile_is_that_of_the_script(tmp_path: Path) -> None:
    assert model_for(tmp_path).profile() == ProviderProfile("scripted", "scripted", None, None)
    changed = model_for(tmp_path, model="other", window_tokens=100)
    assert changed.profile() == ProviderProfile("scripted", "other", None, 100)
