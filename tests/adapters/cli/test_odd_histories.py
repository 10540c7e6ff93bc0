"""Files that a user really has, in every format: half written, patched, in another encoding. Each line is told of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.main import call

Records = list[dict[str, Any]]
CHAT: Records = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
    {"role": "assistant", "content": "done"},
]
BLOCKS: Records = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
]
ITEMS: Records = [
    {"type": "message", "role": "user", "content": "hi"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "ok"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
]
NOON = "2026-03-01T12:00:0"
SESSION: Records = [
    {
        "type": message["role"],
        "uuid": f"u{n}",
        "parentUuid": f"u{n - 1}" if n else None,
        "sessionId": "s",
        "timestamp": f"{NOON}{n}Z",
        "message": message,
    }
    for n, message in enumerate(BLOCKS)
]
ROLLOUT: Records = [
    {"timestamp": f"{NOON}{n}Z", "type": "response_item", "payload": {**item, "content": text} if text else item}
    for n, (item, text) in enumerate(
        zip(ITEMS, ([{"type": "input_text", "text": "hi"}], None, None, ITEMS[3]["content"]), strict=True)
    )
]
FORMATS: dict[str, Records] = {
    "openai-chat": CHAT,
    "anthropic": BLOCKS,
    "openai-responses": ITEMS,
    "claude-code": SESSION,
    "codex": [{"timestamp": f"{NOON}0Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/x"}}, *ROLLOUT],
}
Lines = list[bytes]


def insert(*more: bytes) -> Callable[[Lines], bytes]:
    return lambda lines: b"\n".join([lines[0], *more, *lines[1:]]) + b"\n"


def whole(change: Callable[[bytes], bytes]) -> Callable[[Lines], bytes]:
    return lambda lines: change(b"\n".join(lines) + b"\n")


ODD: dict[str, tuple[Callable[[Lines], bytes], list[tuple[str, int]]]] = {
    "nothing": (lambda lines: b"", [("empty_file", 1)]),
    "blank lines alone": (lambda lines: b"\n \n\n", [("empty_file", 1)]),
    "a torn last line": (lambda lines: b"\n".join(lines)[:-9], [("torn_line", -1)]),
    "a torn line in the middle": (insert(b'{"role": "us'), [("torn_line", 2)]),
    "a block of NULs": (insert(bytes(512)), [("nul_bytes", 2)]),
    "a NUL inside of a line": (insert(b'{"role":\0 "user"}'), [("nul_bytes", 2)]),
    "a byte order mark": (whole(lambda data: b"\xef\xbb\xbf" + data), [("byte_order_mark", 1)]),
    "another encoding": (insert(b'{"content": "h\xe9"}'), [("not_utf8", 2)]),
    "no objects": (
        insert(b"[1]", b"42", b"null", b'"x"'),
        [("not_an_object", 2), ("not_an_object", 3), ("not_an_object", 4), ("not_an_object", 5)],
    ),
    "no JSON": (insert(b"hello"), [("not_json", 2)]),
    "a number that is none": (insert(b'{"x": NaN}'), [("not_json", 2)]),
    "a key twice": (insert(b'{"x": 1, "x": 2}'), [("repeated_key", 2)]),
    "a hundred thousand brackets": (insert(b"[" * 100_000), [("not_json", 2)]),
    "lines of another system": (whole(lambda data: data.replace(b"\n", b"\r\n")), []),
    "separators of lines inside of texts": (whole(lambda data: data.replace(b'"hi"', '"h\u2028i\x85"'.encode())), []),
    "half a character": (whole(lambda data: data.replace(b'"hi"', b'"\\ud83d"')), [("text_changed", -2)]),
    "blank lines between": (whole(lambda data: data.replace(b"\n", b"\n\n")), []),
}
PASSED_OVER = {"byte_order_mark", "text_changed"}


@pytest.fixture(params=FORMATS)
def lines(request: pytest.FixtureRequest) -> tuple[str, Lines]:
    """A format, and a good history of it."""
    return request.param, [json.dumps(record).encode() for record in FORMATS[request.param]]


@pytest.mark.parametrize("how", ODD)
def test_every_odd_line_is_told_of_with_its_number_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: tuple[str, Lines], how: str
) -> None:
    name, good = lines
    change, expected = ODD[how]
    file = tmp_path / "history.jsonl"
    content = change(good)
    file.write_bytes(content)

    def ask(command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = call((command, str(file), *arguments, "--json"))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        document: dict[str, Any] = json.loads(said.out)
        assert document.get("code") != "internal_error", document
        return code, document

    code, judged = ask("judge", "--format", name)
    unreadable = [code for code, _ in expected if code not in PASSED_OVER]
    told = {(one["code"], one["line"]) for one in judged["findings"]}
    places = {-1: len(good), -2: next(n for n, line in enumerate(good, 1) if b'"hi"' in line)}
    assert told >= {(code, places.get(line, line)) for code, line in expected}, judged["findings"]
    assert {one["code"] for one in judged["findings"] if one["unreadable"]} == set(unreadable)
    assert code in ({2, 4} if unreadable else {0, 3}), judged
    assert (judged["decision"] == "park") or not unreadable
    guessed, automatic = ask("judge")
    if "code" in automatic:
        assert (guessed, automatic["code"]) == (2, "format_unknown")
    else:
        assert (guessed, automatic["findings"]) == (code, judged["findings"])
    refused, imported = ask("import", "--format", name, "--store", str(tmp_path / "store.sqlite"))
    assert (
        (refused == 4 and imported["refused"] == "unreadable")
        if unreadable
        else (refused == 0 and imported["imported"])
    )
