"""What is no line of JSON is named with its line and byte, and nothing behind it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from safepoint.adapters.interchange.document_places import document_of, is_document
from safepoint.adapters.interchange.lines import Reading, objects_of
from safepoint.ports.history_format import FindingCode

from .reading import answer, calling, codes, exit_status, findings, judged, lines, replayed, said, user, verdicts

RECORD = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hello"}}


def read(data: bytes) -> tuple[list[Any], list[tuple[str, int, int]]]:
    reading = Reading()
    objects = [value for _, value in objects_of(data, reading)]
    return objects, [(found.code.value, found.place.line, found.place.offset) for found in reading.findings]


@pytest.mark.parametrize(
    ("line", "code", "offset"),
    [
        (b'{"a": "cut in the mid', FindingCode.TORN_LINE, 0),
        (b'{"a": [1, 2', FindingCode.TORN_LINE, 0),
        (b"no json at all", FindingCode.NOT_JSON, 0),
        (b'{"a": NaN}', FindingCode.NOT_JSON, 0),
        (b'{"a": 1} {"b": 2}', FindingCode.NOT_JSON, 0),
        (b'{"a": 1, "a": 2}', FindingCode.REPEATED_KEY, 0),
        (b"[1]", FindingCode.NOT_AN_OBJECT, 0),
        (b'"text"', FindingCode.NOT_AN_OBJECT, 0),
        (b"42", FindingCode.NOT_AN_OBJECT, 0),
        (b"null", FindingCode.NOT_AN_OBJECT, 0),
        (b'{"a": "\xff"}', FindingCode.NOT_UTF8, 7),
        (b"\0" * 512, FindingCode.NUL_BYTES, 0),
        (b"\0" * 16 + b'{"a": 1}', FindingCode.NUL_BYTES, 0),
        (b'{"a": 1' + b"\0" * 4, FindingCode.NUL_BYTES, 7),
        (b'{"a":' * 20_000, FindingCode.NOT_JSON, 0),
    ],
)
def test_a_line_that_is_no_object_is_named_and_its_neighbours_are_read(
    line: bytes, code: FindingCode, offset: int
) -> None:
    first = b'{"n": 1}\n'
    objects, found = read(first + line + b'\n{"n": 2}\n')
    assert objects == [{"n": 1}, {"n": 2}]
    assert found == [(code.value, 2, len(first) + offset)]


def test_a_byte_order_mark_is_told_and_passed_over() -> None:
    objects, found = read(b'\xef\xbb\xbf{"n": 1}\n')
    assert (objects, found) == ([{"n": 1}], [("byte_order_mark", 1, 0)])


def test_only_a_line_feed_ends_a_line_and_blank_lines_are_none() -> None:
    text = json.dumps({"t": "a\u2028b\x85c"}, ensure_ascii=False).encode()
    objects, found = read(b"\r\n" + text + b"\r\n  \n")
    assert (objects, found) == ([{"t": "a\u2028b\x85c"}], [])


def test_an_empty_file_is_told() -> None:
    assert read(b"\n\n")[1] == [("empty_file", 1, 0)]


def test_half_a_character_is_read_as_it_is() -> None:
    """It is for whoever stores the text to say what became of it (field report r3-098)."""
    assert read(b'{"t": "\\ud83d"}')[0] == [{"t": "\ud83d"}]


def test_each_object_of_a_document_has_its_place() -> None:
    data = b'{\n "messages": [\n  {"a": "{\\"x"},\n  {"b": {"c": []}, "d": [{"e": 1}]}\n ]\n}'
    document = document_of(data, Reading())
    assert document is not None
    assert isinstance(document.value, dict)
    messages = document.value["messages"]
    assert isinstance(messages, list)
    places = [document.place_of(message) for message in messages]
    assert [(place.line, data[place.offset : place.offset + 5]) for place in places] == [(3, b'{"a":'), (4, b'{"b":')]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'[{"role": "user"}]', True),
        (b'{\n "messages": []\n}', True),
        (b'{"messages": []}', True),
        (b'{"role": "user"}\n{"role": "assistant"}', False),
        (b'{"role": "user"}', False),
        (b'{"role": "us\n{"role": "assistant"}', False),
        (b'{"messages": [\n{"role": "user"}]}', True),
        (b"\xff\xfe", False),
        (b"", False),
    ],
)
def test_a_document_is_told_from_lines(data: bytes, expected: bool) -> None:
    assert is_document(data, {"messages"}) is expected


def numbered(count: int) -> list[dict[str, Any]]:
    """Lines of a session: the user asks, the model answers, in turn."""
    kinds = ("user", "assistant")
    return [
        {"type": kinds[n % 2], "uuid": f"r{n}", "message": {"role": kinds[n % 2], "content": f"text {n}"}}
        for n in range(count)
    ]


def test_nothing_is_built_from_the_lines_before_a_cut_one_as_if_they_were_whole() -> None:
    """Field report r3-066: line 4 of 7 is cut in the middle, lines 5 to 7 are good."""
    listed = numbered(7)
    good = [json.dumps(one).encode() for one in listed]
    good[3] = good[3][: len(good[3]) // 2]
    data = b"\n".join(good) + b"\n"
    judgement = judged(data)
    offset = sum(len(line) + 1 for line in good[:3])
    (torn,) = judgement.history.unreadable
    assert (torn.code, torn.place.line, torn.place.offset) == (FindingCode.TORN_LINE, 4, offset)
    assert codes(judgement) == {"source_run_unreadable"}
    assert (exit_status(judgement), judgement.replay.blocked) == (4, "source_run_unreadable")
    shown = {place.line for run in judgement.history.runs for place in run.places.values()}
    assert shown == {1, 2, 3, 5, 6, 7}


def test_a_block_of_nuls_is_the_same_damage_for_every_reader() -> None:
    """Field report r3-068: valid lines, 512 NUL bytes with a line end, valid lines."""
    before = lines(*numbered(2))
    judgement = judged(before + b"\0" * 512 + b"\n" + lines(*numbered(4)[2:]))
    (nuls,) = judgement.history.unreadable
    assert (nuls.code, nuls.place.offset) == (FindingCode.NUL_BYTES, len(before))
    reasons = [reason.detail["detail"] for reason in judgement.reasons if reason.code == "source_run_unreadable"]
    assert reasons == [f"line 3, byte {len(before)}: nul_bytes"]


def test_half_a_record_before_the_whole_one_is_named() -> None:
    """Field report r3-071."""
    whole = json.dumps(numbered(2)[1]).encode()
    judgement = judged(lines(numbered(1)[0], whole[: len(whole) // 2], whole))
    assert findings(judgement) == [("torn_line", 2)]
    assert exit_status(judgement) == 4


def test_behind_a_place_that_could_not_be_read_absence_proves_nothing() -> None:
    whole, damaged = judged(lines(MAKA_USER, MAKA_CALL)), judged(lines(MAKA_USER, MAKA_CALL, b"{"))
    assert verdicts(whole) == [("call-1", "definitely_not_dispatched", "new_protocol_before_dispatch")]
    assert verdicts(damaged) == [("call-1", "indeterminate", "legacy_dispatch_unknown")]


MAKA_USER = (
    b'{"id":"u","sessionId":"s","invocationId":"i","runId":"r","turnId":"t","ts":1,"partial":false,"role":"user",'
    b'"author":"user","content":{"kind":"text","text":"do"},'
    b'"actions":{"runtimeProtocol":{"toolBoundary":"t1_after_preflight_v1"}}}'
)
MAKA_CALL = (
    b'{"id":"c","sessionId":"s","invocationId":"i","runId":"r","turnId":"t","ts":2,"partial":false,"role":"model",'
    b'"author":"agent","content":{"kind":"function_call","id":"call-1","name":"Bash","args":{}}}'
)


def test_a_file_of_which_nothing_can_be_read_cannot_be_used() -> None:
    assert exit_status(judged(b'{"messages": [', "openai-chat")) == 2
    assert replayed(judged(b"", "codex")) == []


def test_a_good_file_has_no_findings() -> None:
    assert findings(judged(lines(user("hello"), said("hi")), "openai-chat")) == []


@pytest.mark.parametrize(
    "format_name", ["openai-chat", "openai-responses", "anthropic", "claude-code", "codex", "maka"]
)
def test_each_item_of_an_array_that_is_no_object_has_its_own_place(format_name: str) -> None:
    data = b'[\n{"a": "[{,"},\n42, null,\n"x,[\\"",\n [1, [2]],\n  {"b": [3]}, true\n]\n'
    told = [found for found in judged(data, format_name).history.findings if found.code == "not_an_object"]
    offsets = [data.index(one) for one in (b"42", b"null", b'"x', b"[1", b"true")]
    assert [(found.place.line, found.place.offset) for found in told] == [
        (data[:offset].count(b"\n") + 1, offset) for offset in offsets
    ]
    assert [found.place.path.partition("[")[2] for found in told] == ["1]", "2]", "3]", "4]", "6]"]


def test_an_exchange_that_is_no_object_has_its_place() -> None:
    data = b'{"interactions": [\n0,\n{"request": {"messages": [{"role": "user", "content": "go"}]}}]}'
    assert findings(judged(data, "openai-chat")) == [("not_an_object", 2)]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('[\n{"a": 1},\n{"b": ', "torn_line", 3),
        ('[\n{"a": 1},\n{"b" 1}]', "not_json", 3),
        ('[\n{"a": {"c": 1}},\n{"b": {"}": 1}, "c": {"d": 1, "d": 2}}]', "repeated_key", 3),
        ('[\n{"a":\n\0', "nul_bytes", 3),
        ('[\n{"a":\n\udcff', "not_utf8", 3),
    ],
)
def test_damage_in_a_document_is_told_with_its_line(text: str, code: str, line: int) -> None:
    assert findings(judged(text.encode("utf-8", "surrogateescape"), "openai-chat")) == [(code, line)]


@pytest.mark.parametrize("first", ["[1]", "[]", '[{"role": "user"}]', "42", '"x"', "\x0b\x0c"])
@pytest.mark.parametrize("format_name", ["auto", "openai-chat"])
def test_a_first_line_that_is_no_object_costs_no_other_line(first: str, format_name: str) -> None:
    judgement = judged(lines(first.encode(), user("go"), calling(("c1", "pay", {})), answer("c1")), format_name)
    code = "not_an_object" if first.isprintable() else "not_json"
    assert findings(judgement) == [(code, 1)]
    assert [call_id for call_id, _, _ in verdicts(judgement)] == ["c1"]
    assert exit_status(judgement) == 4


def test_an_array_that_fills_one_line_is_a_document() -> None:
    judgement = judged(json.dumps([user("go"), calling(("c1", "pay", {})), answer("c1")]).encode() + b"\n\n \n")
    assert findings(judgement) == []
    assert [call_id for call_id, _, _ in verdicts(judgement)] == ["c1"]
