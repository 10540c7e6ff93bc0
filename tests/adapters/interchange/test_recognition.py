"""`auto`: each sample is taken for what it is, and what is nothing known is not guessed."""

from __future__ import annotations

import pytest

from safepoint.application.judge_history import FormatUnknown

from .reading import READ, SAMPLES, lines, said, user

KNOWN = {
    "anthropic_thinking.json": "anthropic",
    "chat_exchanges.json": "openai-chat",
    "chat_lines.jsonl": "openai-chat",
    "chat_parallel.json": "openai-chat",
    "claude_code_tree.jsonl": "claude-code",
    "codex_aborted.jsonl": "codex",
    "maka_interrupted.jsonl": "maka",
    "responses_held.json": "openai-responses",
    "responses_lines.jsonl": "openai-responses",
}


def test_every_sample_is_listed() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_taken_for_what_it_is(name: str) -> None:
    assert READ((SAMPLES / name).read_bytes(), "auto").format == KNOWN[name]


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_taken_for_what_it_is_although_it_is_cut(name: str) -> None:
    """One damaged line at the end hides nothing (F12); a document that was cut is none."""
    data = (SAMPLES / name).read_bytes()
    if name.endswith(".jsonl"):
        assert READ(data[:-20], "auto").format == KNOWN[name]
    else:
        with pytest.raises(FormatUnknown):
            READ(data[:-20], "auto")


@pytest.mark.parametrize("data", [b"", b"\0\0", b"{}", b"[]", b'{"a": 1}', b"plain text", b"\xff\xfe", b"[[[[1]]]]"])
def test_what_is_nothing_known_is_not_guessed(data: bytes) -> None:
    with pytest.raises(FormatUnknown):
        READ(data, "auto")


def test_a_format_that_there_is_not_is_named() -> None:
    with pytest.raises(FormatUnknown, match="latin"):
        READ(b"{}", "latin")


def test_plain_messages_are_taken_for_chat() -> None:
    assert READ(lines(user("hello"), said("hi")), "auto").format == "openai-chat"
