"""The provider anthropic from the command line, against a server on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..models.chat_server import serving
from ..models.message_events import API_KEY, address_of, answers, begun, delta, fails, said, start, stop, text, use
from .program import Program

SIGNATURE = "c2lnbmVkIGJ5dGVz+/=="
CALL = said(
    start(),
    begun(0, "thinking"),
    delta(0, thinking="I write it."),
    delta(0, signature=SIGNATURE),
    *text("I write.", index=1),
    *use('{"path": "a.txt", "content": "hi"}', index=2, name="write_file"),
    stop("tool_use"),
)
DONE = answers(*text("Done."))
BROKEN = said(start(), *text("Do"), fails("api_error"))


def turn(program: Program, *more: str) -> tuple[str | Path, ...]:
    return ("run", "Do it.", "--workspace", program.workspace, "--session", "s1", *more)


@pytest.fixture(autouse=True)
def environment(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", API_KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("named", [("--model", "anthropic:m"), ("--provider", "anthropic", "--model", "m")])
def test_a_turn_with_a_tool_call(program: Program, monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...]) -> None:
    with serving(CALL, DONE) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address_of(server))
        ran = program(*turn(program, *named, "--allow", "write_file"))
    assert (ran.code, ran.out) == (0, "Done.\n")
    assert (program.workspace / "a.txt").read_text() == "hi"
    assert [received.body["model"] for received in server.received] == ["m", "m"]
    thinking = server.received[1].body["messages"][1]["content"][0]
    assert thinking == {"type": "thinking", "thinking": "I write it.", "signature": SIGNATURE}


def test_an_answer_that_failed_is_resumed_with_the_same_settings_and_its_thinking(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CALL, BROKEN, DONE) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address_of(server))
        ran = program(*turn(program, "--model", "anthropic:m", "--allow-all", "--json"))
        assert (ran.code, ran.document["failure_class"]) == (1, "provider_failed")
        (way,) = ran.document["commands"]
        assert program.bare(*way["command"].split()[1:]).out == "Done.\n"
    bodies = [received.body for received in server.received]
    assert bodies[2]["messages"] == bodies[1]["messages"]
    assert bodies[2]["messages"][1]["content"][0]["signature"] == SIGNATURE


def test_a_new_turn_is_offered_with_the_recorded_provider(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(CALL, BROKEN) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address_of(server))
        program(*turn(program, "--model", "anthropic:m", "--allow-all"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "another-account")
        parked = program("plan", "s1", "--json")
    offered = [way["command"] for way in parked.document["commands"] if " run " in way["command"]]
    assert offered
    assert all("--provider anthropic --model m" in command for command in offered)


def test_the_key_is_kept_nowhere(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(DONE) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address_of(server))
        ran = program(*turn(program, "--model", "anthropic:m"))
    assert API_KEY not in ran.out + ran.err
    for path in program.folder.rglob("*"):
        assert not path.is_file() or API_KEY.encode() not in path.read_bytes()
