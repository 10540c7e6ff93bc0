"""A script with a mistake says what, where, why and what next. Issue 2: bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safepoint.adapters.models.script import Script, ScriptError, load_script


def error_for(tmp_path: Path, text: str | bytes) -> ScriptError:
    path = tmp_path / "script.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScriptError) as raised:
        load_script(path)
    assert str(path) in str(raised.value)
    assert raised.value.next_step in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not strict JSON"),
        ("{", "line 1 column 2"),
        (b"\xff", "not UTF-8"),
        ('{"steps": [], "steps": []}', "a key occurs twice"),
        ('{"steps": [{"text": "a", "calls": [{"tool": "t", "args": {"n": NaN}}]}]}', "NaN"),
        ("[]", "the whole file: "),
        ("{}", "steps: field required"),
        ('{"steps": [{}]}', "steps[0]: a step needs text or calls"),
        ('{"steps": [{"thinking": "hm"}]}', "steps[0]: a step needs text or calls"),
        ('{"steps": [{"text": 7}]}', "steps[0].text: input should be a valid string"),
        ('{"steps": [{"text": "a"}, {"calls": [{"args": {}}]}]}', "steps[1].calls[0].tool: field required"),
        ('{"steps": [{"calls": [{"tool": ""}]}]}', "steps[0].calls[0].tool: "),
        ('{"steps": [{"calls": [{"tool": "a\\u0000b"}]}]}', "steps[0].calls[0].tool: "),
        ('{"steps": [{"calls": [{"tool": "t", "arguments": {}}]}]}', "calls[0].arguments: this name is not known here"),
        ('{"steps": [{"calls": [{"tool": "t", "args": {}, "args_text": "{}"}]}]}', "args or args_text, not both"),
        ('{"steps": [{"text": "a", "delay_seconds": -1}]}', "steps[0].delay_seconds: "),
        ('{"steps": [{"text": "a", "finish": ""}]}', "steps[0].finish: "),
        ('{"steps": [], "drop_after": 0}', "drop_after: "),
        ('{"steps": [], "fail_first": true}', "fail_first: "),
        ('{"steps": [], "calls_log": "missing/log.jsonl"}', "which is not a folder"),
        (json.dumps({"steps": [{}] * 7}), "; and 2 more"),
    ],
)
def test_each_mistake_names_its_place_and_reason(tmp_path: Path, text: str | bytes, says: str) -> None:
    assert says in error_for(tmp_path, text).detail


def test_a_script_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="No such file"):
        load_script(tmp_path / "absent.json")
    with pytest.raises(ScriptError, match="directory"):
        load_script(tmp_path)


def test_a_script_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safepoint.adapters.models.script.SCRIPT_BYTES_MAX", 10)
    assert "more than 10 bytes" in error_for(tmp_path, '{"steps": []}').detail


def test_the_calls_log_is_relative_to_the_folder_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"steps": [], "calls_log": "calls.jsonl"}')
    assert load_script(tmp_path / "script.json").calls_log == str(tmp_path / "calls.jsonl")


def test_a_step_is_finished_by_its_kind_unless_the_script_says_how() -> None:
    script = Script.model_validate_json(
        '{"steps": [{"text": "a"}, {"calls": [{"tool": "t"}]}, {"calls": [{"tool": "t"}], "finish": "length"}]}'
    )
    assert [step.finished(1, "m").finish_reason for step in script.steps] == ["stop", "tool_calls", "length"]
