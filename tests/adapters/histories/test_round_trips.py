"""From a history to each format and back: legal, accepted by the official types, and nothing is lost on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from safepoint.adapters.histories.anthropic import to_anthropic
from safepoint.adapters.histories.openai_chat import to_openai_chat
from safepoint.adapters.histories.openai_responses import to_openai_responses
from safepoint.adapters.histories.spelling import NOT_STRICT_JSON, flagged_result_text, result_text
from safepoint.adapters.interchange.provider_messages import MESSAGE_FORMATS, replay_from
from safepoint.adapters.models.legality import why_illegal
from safepoint.application.judge_history import FormatUnknown, JudgedReplay, ReplayUnusable
from safepoint.domain.events.model import Attachment
from safepoint.domain.replay.items import CallItem, Item, ResultItem, TextItem, ThinkingItem
from safepoint.domain.replay.legality import Illegality, IllegalityCode

from .items import call, histories, result, said, thought, user
from .official_types import MADE


def told(history: Iterable[Item], format_name: str) -> list[Any]:
    """What a history says, as far as a format has a place for it; an id is named by the place of its call."""
    ids: dict[str, int] = {}
    listed: list[Any] = []
    for item in history:
        match item:
            case CallItem():
                ids[item.call_id] = len(ids)
                args = item.args if item.args_text is None else {NOT_STRICT_JSON: item.args_text}
                listed.append(("call", ids[item.call_id], item.tool_name, args))
            case ResultItem() if format_name == "anthropic":
                text = result_text(item.result)
                listed.append(("result", ids[item.call_id], text or "Error" * item.is_error, item.is_error))
            case ResultItem():
                listed.append(("result", ids[item.call_id], flagged_result_text(item)))
            case ThinkingItem():
                if _has_a_place(item, format_name):
                    listed.append(("thinking", item.text, item.signature, item.provider_options))
            case TextItem():
                _join(listed, "text", item.text, "" if format_name == "openai-chat" else None)
            case _:
                _join(listed, "user", item.text, "\n" if format_name == "anthropic" else None)
    return listed


def _has_a_place(item: ThinkingItem, format_name: str) -> bool:
    kind = item.provider_options["type"] if isinstance(item.provider_options, dict) else None
    signed = item.signature is not None
    return {"anthropic": signed or kind == "redacted_thinking", "openai-responses": kind == "reasoning"}.get(
        format_name, False
    )


def _join(listed: list[Any], kind: str, text: str, by: str | None) -> None:
    if by is not None and listed and listed[-1][0] == kind:
        listed[-1] = (kind, listed[-1][1] + by + text)
    else:
        listed.append((kind, text))


@pytest.mark.parametrize("format_name", MESSAGE_FORMATS)
@given(history=histories())
@settings(deadline=None, max_examples=60)
def test_any_legal_history_is_accepted_and_comes_back_legal_and_whole(
    format_name: str, history: tuple[Item, ...]
) -> None:
    messages = MADE[format_name](*history)
    back = replay_from(messages, format_name)
    assert (back.blocked, back.illegal, back.trimmed, back.left_out) == (None, None, (), ())
    assert why_illegal(back.items) is None
    assert told(back.items, format_name) == told(history, format_name)


@pytest.mark.parametrize("format_name", MESSAGE_FORMATS)
@given(history=histories())
@settings(deadline=None, max_examples=30)
def test_what_came_back_makes_the_same_messages_again_and_again(format_name: str, history: tuple[Item, ...]) -> None:
    once = replay_from(MADE[format_name](*history), format_name).items
    messages = MADE[format_name](*once)
    assert MADE[format_name](*replay_from(messages, format_name).items) == messages


HISTORY: tuple[Item, ...] = (
    user(),
    thought("s1", "Look.", "c2lnbmF0dXJl+/=="),
    thought("s1", "", options={"type": "redacted_thinking", "data": "b3BhcXVl"}),
    said("s1", "I look."),
    call("s1", "c1", {"path": "a"}),
    call("s1", "c2", {"path": "b"}),
    result("s1", "c1"),
    result("s1", "c2", "gone", is_error=True),
)


@pytest.mark.parametrize("format_name", MESSAGE_FORMATS)
def test_an_image_that_is_known_by_its_address_comes_back_as_one(format_name: str) -> None:
    shown = user("Look", Attachment(name="a", media_type="image/png", uri="https://host/a.png"))
    messages = MADE[format_name](shown)
    assert MADE[format_name](*replay_from(messages, format_name).items) == messages


@pytest.mark.parametrize("format_name", MESSAGE_FORMATS)
def test_the_check_notices_a_result_that_is_missing(format_name: str) -> None:
    messages = MADE[format_name](*HISTORY[:-1])
    back = replay_from(messages, format_name)
    assert back.blocked == "tool_recovery_unsettled"


@pytest.mark.parametrize("format_name", MESSAGE_FORMATS)
def test_a_history_without_an_end_is_trimmed_as_everywhere(format_name: str) -> None:
    back = replay_from(MADE[format_name](*HISTORY, said("s2", "Both")), format_name)
    assert told(back.items, format_name) == told(HISTORY, format_name)
    assert len(back.trimmed) == 1


@pytest.mark.parametrize(
    ("format_name", "make"),
    [("openai-chat", to_openai_chat), ("openai-responses", to_openai_responses), ("anthropic", to_anthropic)],
)
def test_a_name_that_the_api_would_refuse_for_ever_is_spelled_as_it_takes_it_unless_it_is_offered(
    format_name: str, make: Callable[..., list[Any]]
) -> None:
    """Field report r3-024: one bad record must not block a session; what is stored stays as it is."""
    called = (call("s", "a", name="functions.read file"), call("s", "b", name="fs.read"))
    history = (user(), *called, result("s", "a"), result("s", "b"))
    back = replay_from(make(history, offered=["fs.read"]), format_name)
    assert [item.tool_name for item in back.items if item.kind == "call"] == ["functions_read_file", "fs.read"]
    long = (user(), call("s", "a", name="x" * 200), result("s", "a"))
    (sent,) = [item for item in replay_from(make(long), format_name).items if item.kind == "call"]
    assert len(sent.tool_name) in {64, 128}


def test_no_client_package_is_needed_to_make_or_read_a_history() -> None:
    example = Path(__file__).parents[3] / "examples" / "provider_histories.py"
    without = "import runpy, sys; sys.modules |= dict.fromkeys(('openai', 'anthropic'))"
    without += "; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", without, str(example)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "['user', 'assistant', 'user']" in done.stdout


def test_a_format_that_is_none_of_messages_is_refused() -> None:
    with pytest.raises(FormatUnknown):
        replay_from([], "claude-code")


def test_what_was_read_is_given_on_as_it_is() -> None:
    back = replay_from([{"role": "user", "content": "Hello?"}], "openai-chat")
    assert to_anthropic(back) == to_anthropic(back.items) != []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"role": "wizard", "content": "Abracadabra."}, "blocked"),
        ({"role": "tool", "tool_call_id": "c1", "content": "10.00"}, "blocked"),
    ],
)
def test_what_is_no_history_is_refused_where_it_is_given_on(said: dict[str, Any], why: str) -> None:
    back = replay_from([{"role": "user", "content": "Hello?"}, said], "openai-chat")
    assert (back.items, back.illegal) == ((), None)
    with pytest.raises(ReplayUnusable, match=why):
        to_anthropic(back)


def test_what_a_strict_provider_refuses_is_refused_where_it_is_given_on() -> None:
    with pytest.raises(ReplayUnusable, match=r"illegal \(call_not_answered at item 2\)"):
        to_anthropic(JudgedReplay(illegal=Illegality(IllegalityCode.CALL_NOT_ANSWERED, 2)))


@pytest.mark.parametrize("what", [None, "Hello?", b"Hello?", {"role": "user"}, ["Hello?"], 3])
def test_what_is_no_list_of_messages_is_said(what: Any) -> None:
    with pytest.raises(TypeError, match="JSON object"):
        replay_from(what, "openai-chat")


@pytest.mark.parametrize("what", [None, "Hello?", [{"role": "user", "content": "Hello?"}], 3])
def test_what_is_no_history_is_said(what: Any) -> None:
    with pytest.raises(TypeError, match="a history"):
        to_anthropic(what)
