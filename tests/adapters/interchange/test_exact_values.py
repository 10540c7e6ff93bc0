"""What a file says is kept exactly, or its change is told with its line: no value silently becomes another one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.adapters.interchange.exact_json import InexactNumber, key_of, number_of, text_of
from safepoint.adapters.interchange.lines import parsed
from safepoint.domain.events.model import ModelText, UserMessage
from safepoint.domain.events.tool import ToolCalled, ToolResponded
from safepoint.domain.tool_arguments import ARGUMENTS_BYTES_MAX
from safepoint.domain.tool_results import RESULT_BYTES_MAX

from .reading import answer, chat, events_of, exit_status, findings, issues, judged, lines, user

DIGITS = "9" * 5_000
GO = user("go")


def use(args: str, call_id: str = "c1") -> bytes:
    block = f'{{"type": "tool_use", "id": "{call_id}", "name": "pay", "input": {args}}}'
    return f'{{"role": "assistant", "content": [{block}]}}'.encode()


def result(content: str, call_id: str = "c1") -> bytes:
    block = f'{{"type": "tool_result", "tool_use_id": "{call_id}", "content": {content}}}'
    return f'{{"role": "user", "content": [{block}]}}'.encode()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"\\ud800"', '"\\ud801"'),
        ('"?"', '"\\ud801"'),
        ("1e400", "1e500"),
        ("1e400", "-1e400"),
        ("1e-400", "1e-500"),
        (DIGITS, DIGITS + "9"),
        ("0.1234567890123456789", "0.1234567890123456788"),
        ("1", "true"),
        (f'"{"x" * ARGUMENTS_BYTES_MAX}y"', f'"{"x" * ARGUMENTS_BYTES_MAX}z"'),
    ],
)
def test_calls_that_differ_in_what_cannot_be_kept_are_two(one: str, other: str) -> None:
    differing = judged(lines(GO, use(f'{{"a": {one}}}'), use(f'{{"a": {other}}}'), result('"ok"')), "anthropic")
    assert issues(differing) == [("duplicate_call", 3)]
    assert exit_status(differing) == 4
    alike = judged(lines(GO, use(f'{{"a": {one}}}'), use(f'{{"a": {one}}}'), result('"ok"')), "anthropic")
    assert issues(alike) == []
    assert ("repeated_call", 3) in findings(alike)


@pytest.mark.parametrize(("one", "other"), [("1e400", "1e500"), ('"\\ud800"', '"\\ud801"'), ("1", "true")])
def test_answers_that_differ_in_what_cannot_be_kept_are_two(one: str, other: str) -> None:
    told = judged(lines(GO, use("{}"), result(f'{{"n": {one}}}'), result(f'{{"n": {other}}}')), "anthropic")
    assert issues(told) == [("duplicate_response", 4)]


def test_records_that_differ_in_what_cannot_be_kept_are_two() -> None:
    def record(number: str) -> bytes:
        return b'{"id": "m1", "role": "assistant", "content": "x", "n": %s}' % number.encode()

    assert issues(judged(lines(GO, record("1e400"), record("1e500")), "anthropic")) == [("duplicate_event_id", 3)]
    assert ("repeated_record", 3) in findings(judged(lines(GO, record("1e400"), record("1e400")), "anthropic"))


@pytest.mark.parametrize(
    "args",
    [
        '{"a": 1e400}',
        f'{{"a": {DIGITS}}}',
        '{"a": "\\ud800x"}',
        '{"\\udfff": 1}',
        '{"a": 9007199254740993}',
        '{"a": [1e400, "x", [], {}, null, true, 1.5, -0.25]}',
    ],
)
def test_an_object_that_is_no_strict_json_is_kept_as_the_text_that_spells_it(args: str) -> None:
    told = judged(lines(GO, use(args), result(args), user("more")), "anthropic")
    assert findings(told) == [("kept_as_text", 2), ("kept_as_text", 3)]
    [called], [responded] = events_of(told, ToolCalled), events_of(told, ToolResponded)
    assert (called.args, called.args_text, responded.result) == (None, args, args)


def test_a_number_of_more_digits_than_a_double_has_keeps_its_text_beside_the_double() -> None:
    args = '{"pi": 3.14159265358979323846}'
    told = judged(lines(GO, use(args), result('"ok"'), user("more")), "anthropic")
    assert findings(told) == [("number_changed", 2)]
    [called] = events_of(told, ToolCalled)
    assert (called.args, called.provider_text) == ({"pi": 3.141592653589793}, args)
    spelled = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": args}}
    assert findings(chat(GO, {"role": "assistant", "tool_calls": [spelled]}, answer("c1"))) == [("number_changed", 1)]


def test_half_a_character_in_a_result_or_in_spelled_arguments_is_told() -> None:
    assert findings(judged(lines(GO, use("{}"), result('"o\\udc00k"'), user("more")), "anthropic")) == [
        ("text_changed", 3)
    ]
    spelled = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"a": "\ud800"}'}}
    assert findings(chat(GO, {"role": "assistant", "tool_calls": [spelled]}, answer("c1"))) == [("text_changed", 1)]


def test_what_is_cut_to_its_bound_is_told_with_its_size() -> None:
    big = json.dumps("x" * RESULT_BYTES_MAX)
    told = judged(lines(GO, use(f'{{"a": {big}}}'), result(big), user("more")), "anthropic")
    assert findings(told) == [("kept_as_text", 2), ("cut_short", 2), ("cut_short", 3)]
    assert [found.detail.split()[0] for found in told.history.findings if found.code == "cut_short"] == [
        str(len(big) + 7),
        str(RESULT_BYTES_MAX),
    ]


@pytest.mark.parametrize("written", ['"yesterday"', "17000000000000000", '"99999-06-14T11:02:00Z"', "true", "1e400"])
def test_a_time_that_cannot_be_read_is_told(written: str) -> None:
    first, second = (
        b'{"role": "user", "content": "go", "timestamp": %s}' % at for at in (b"1700000000", written.encode())
    )
    told = judged(lines(first, second), "openai-chat")
    assert findings(told) == [("time_not_read", 2)]
    assert [event.occurred_at for event in events_of(told, UserMessage)] == ["2023-11-14T22:13:20.000000Z"] * 2


def test_a_file_of_one_message_of_the_user_is_that_message() -> None:
    [said] = events_of(
        judged(lines({"role": "user", "content": [{"type": "text", "text": "go"}]}), "anthropic"), UserMessage
    )
    assert said.text == "go"


def test_half_a_character_in_an_attachments_name_is_told() -> None:
    image = {"type": "document", "title": "a\ud800", "source": {"type": "base64", "data": "AAAA", "media_type": "a/b"}}
    told = judged(lines({"role": "user", "content": [image]}), "anthropic")
    assert findings(told) == [("attachment_not_kept", 1), ("text_changed", 1)]


def envelope(event_id: str, role: str, author: str, **more: Any) -> dict[str, Any]:
    ids = {"sessionId": "s", "invocationId": "i", "runId": "r", "turnId": "t"}
    return {**ids, "id": event_id, "ts": 1_000, "partial": False, "role": role, "author": author, **more}


def calling(args: Any) -> dict[str, Any]:
    content = {"kind": "function_call", "id": "c1", "name": "pay", "args": args}
    return envelope("e2", "model", "agent", content=content, refs={"toolCallId": "c1"})


def answering(result: Any, **more: Any) -> dict[str, Any]:
    content = {"kind": "function_response", "id": "c1", "name": "pay", "result": result}
    return envelope("e3", "tool", "tool", content=content, refs={"toolCallId": "c1"}, **more)


def test_what_maka_took_for_another_number_is_told() -> None:
    said = envelope("e1", "user", "user", content={"kind": "text", "text": "go"})
    whole = {"kind": "json", "id": 107505301260286111}
    told = judged(lines(said, calling({"n": 2**53 + 1}), answering(whole)), "maka")
    assert findings(told) == [("number_changed", 2), ("number_changed", 3)]
    assert findings(judged(lines(said, calling({"n": 2**53}), answering({"kind": "json", "id": 1e16})), "maka")) == []


def test_a_hidden_answer_ends_the_models_step_for_an_import_too() -> None:
    said = envelope("e1", "user", "user", content={"kind": "text", "text": "go"})
    spoke = [envelope(f"m{n}", "model", "agent", content={"kind": "text", "text": "hm"}) for n in range(2)]
    told = judged(lines(said, spoke[0], answering({}, modelVisibility="hidden"), spoke[1]), "maka")
    assert len({event.step_id for event in events_of(told, ModelText)}) == 2


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_the_text_of_a_value_spells_it(value: Any) -> None:
    assert json.loads(text_of(value)) == value
    assert key_of(parsed(text_of(value))) == key_of(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_programs_write_for_a_double_is_that_double(double: float) -> None:
    for spelling in (repr(double), f"{double:.16e}", f"{double:.17g}"):
        assert type(number_of(spelling)) is float
        assert number_of(spelling) == double


@pytest.mark.parametrize("spelling", ["1e400", "-1e400", "1e-400", DIGITS, "0.1234567890123456789", f"1e{DIGITS}"])
def test_a_number_that_no_double_holds_keeps_its_spelling(spelling: str) -> None:
    number = number_of(spelling)
    assert isinstance(number, InexactNumber)
    assert text_of([number]) == f"[{spelling}]"
