"""The provider openai from the command line, against a server on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..models.chat_server import API_KEY, chunk, fragment, serving, streams, streams_and_drops
from .program import Program

CALL = streams(
    chunk("I write."),
    chunk(calls=[fragment(0, '{"path": "a.txt", "content": "hi"}', call_id="call_a", name="write_file")]),
    chunk(finish="tool_calls"),
)
DONE = streams(chunk("Done."), chunk(finish="stop"))


def turn(program: Program, *more: str) -> tuple[str | Path, ...]:
    arguments = ("run", "Do it.", "--provider", "openai", "--model", "test-model", "--workspace", program.workspace)
    return (*arguments, "--session", "s1", *more)


@pytest.fixture(autouse=True)
def environment(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", API_KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_turn_with_a_tool_call(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(CALL, DONE) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ran = program(*turn(program, "--allow", "write_file"))
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert (program.workspace / "a.txt").read_text() == "hi"
    offered = [tool["function"]["name"] for tool in server.received[0].body["tools"]]
    assert "run_shell" in offered
    assert "record_effect" not in offered


def test_nothing_that_changes_runs_unasked_where_nobody_can_be_asked(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CALL, DONE) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert program(*turn(program)).code == 0
    assert not (program.workspace / "a.txt").exists()


def test_a_dropped_answer_fails_the_run_and_the_same_settings_resume_it(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CALL, streams_and_drops(chunk("Do")), DONE) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ran = program(*turn(program, "--allow-all", "--json"))
        assert (ran.code, ran.document["failure_class"]) == (1, "provider_stream_incomplete")
        (way,) = ran.document["commands"]
        assert program.bare(*way["command"].split()[1:]).out == "Done.\n"
        assert server.count() == 3


def test_the_key_is_kept_nowhere(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(DONE) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ran = program(*turn(program))
    assert API_KEY not in ran.out + ran.err
    for path in program.folder.rglob("*"):
        assert not path.is_file() or API_KEY.encode() not in path.read_bytes()
