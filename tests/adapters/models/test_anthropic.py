"""The Anthropic adapter against a real server on loopback, behaving well and badly. SPEC section 14, F5, F10."""

from __future__ import annotations

import builtins
import socket
from collections.abc import Callable
from typing import Any

import pytest

from safepoint.adapters.models.anthropic import Anthropic
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import Usage
from safepoint.domain.identifiers import EventId, StepId, ToolCallId
from safepoint.domain.reasons import FailureClass
from safepoint.domain.replay.items import CallItem, Item, ThinkingItem, UserItem
from safepoint.domain.tool_arguments import NotStrictJson, parse_arguments
from safepoint.ports.contract_kit.model_provider import HISTORY, failure_of, finished_steps, parts_of, request, run
from safepoint.ports.model_provider import ModelRequest
from safepoint.ports.model_step import (
    CallBlock,
    ModelPart,
    StepFinished,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
)
from safepoint.ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    ProviderUnusable,
    RefusalKind,
)

from .chat_server import Answering, ChatServer, drops_before_the_answer, serving
from .message_events import (
    API_KEY,
    END,
    address_of,
    answers,
    begun,
    delta,
    fails,
    keeps_still,
    refuses,
    said,
    said_and_dropped,
    start,
    stop,
    text,
    use,
)

SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk+/=="
REDACTED: Json = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"}


def model_at(server: ChatServer, **settings: Any) -> Anthropic:
    return Anthropic("test-model", api_key=API_KEY, base_url=address_of(server), **settings)


def answer_to(answer: Callable[[Answering], None], asked: ModelRequest | None = None) -> list[ModelPart]:
    """The parts of one answer, of which the server made exactly one."""
    with serving(answer) as server:
        model = model_at(server)
        parts = run(lambda: parts_of(model, asked), model)
        assert server.count() == 1
        return parts


def step_from(*events: Any, reason: str = "end_turn") -> StepFinished:
    (step,) = finished_steps(answer_to(answers(*events, reason=reason)))
    return step


def failure_from(answer: Callable[[Answering], None]) -> ProviderError:
    """The failure of one request, of which the server saw exactly one, and which finished no step."""
    with serving(answer) as server:
        model = model_at(server)
        parts, failure = run(lambda: failure_of(model), model)
        assert server.count() == 1
        assert finished_steps(parts) == []
        assert API_KEY not in str(failure)
        return failure


def test_a_step_with_thinking_text_and_parallel_calls_comes_whole_and_in_order() -> None:
    parts = answer_to(
        said(
            start(cache_read_input_tokens=100, cache_creation_input_tokens=5),
            {"type": "ping"},
            begun(0, "thinking"),
            delta(0, thinking="Two "),
            delta(0, thinking="files."),
            delta(0, signature=SIGNATURE),
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": REDACTED},
            *text("I read ", "both.", index=2),
            *use('{"path":', ' "a.txt"}', index=3),
            *use('{"path":"b.txt"}', index=4),
            {"type": "something_new", "index": 9},
            stop("tool_use"),
            END,
        )
    )
    assert [part.text for part in parts if isinstance(part, TextDelta)] == ["I read ", "both."]
    assert [part.text for part in parts if isinstance(part, ThinkingDelta)] == ["Two ", "files."]
    assert parts[-1] == StepFinished(
        blocks=(
            ThinkingBlock("Two files.", SIGNATURE),
            ThinkingBlock("", None, REDACTED),
            TextBlock("I read both."),
            CallBlock("toolu_3", "read_file", '{"path": "a.txt"}'),
            CallBlock("toolu_4", "read_file", '{"path":"b.txt"}'),
        ),
        finish_reason="tool_use",
        model="test-model-2025",
        provider_response_id="msg_1",
        usage=Usage(input_tokens=115, output_tokens=7),
    )


def test_what_came_goes_back_in_the_next_request_byte_for_byte() -> None:
    """Field report r3-021."""
    step = (
        ThinkingItem(EventId("e2"), StepId("s1"), "Two files.", SIGNATURE),
        ThinkingItem(EventId("e3"), StepId("s1"), "", None, REDACTED),
    )
    calls = tuple(item for item in HISTORY if item.kind in {"call", "result"})
    history = (HISTORY[0], *(item._replace(step_id=calls[0].step_id) for item in step), *calls)
    with serving(answers(*text("ok"))) as server:
        model = model_at(server, thinking={"type": "enabled", "budget_tokens": 2000})
        run(lambda: parts_of(model, request(history)), model)
    content = server.received[0].body["messages"][1]["content"]
    assert content[:2] == [{"type": "thinking", "thinking": "Two files.", "signature": SIGNATURE}, REDACTED]
    assert "thinking" in server.received[0].body


def test_the_request_is_made_once_with_everything_that_was_asked() -> None:
    with serving(answers(*text("ok"))) as server:
        model = model_at(server, tokens_max=4000, thinking={"type": "adaptive"})
        run(lambda: parts_of(model), model)
    (received,) = server.received
    assert received.path == "/v1/messages"
    assert API_KEY in received.headers.get("x-api-key", "") + received.headers.get("authorization", "")
    assert received.headers["x-client-request-id"] == "request-1"
    body = received.body
    assert (body["model"], body["stream"], body["max_tokens"]) == ("test-model", True, 4000)
    assert body["thinking"] == {"type": "adaptive"}
    assert body["system"] == "Be brief."
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [tool["name"] for tool in body["tools"]] == ["read_file"]


@pytest.mark.parametrize(
    ("history", "asked"),
    [
        (HISTORY[:1], True),
        ((*HISTORY[:1], *(item for item in HISTORY if item.kind in {"call", "result"})), False),
        (HISTORY, False),
    ],
    ids=["at the beginning", "after a step without thinking", "and a message"],
)
def test_a_step_of_another_model_does_not_make_the_api_refuse_for_ever(history: tuple[Item, ...], asked: bool) -> None:
    """Field report r3-021: thinking of another model is not sent, and with thinking enabled the API misses it."""
    with serving(answers(*text("ok"))) as server:
        model = model_at(server, thinking={"type": "enabled", "budget_tokens": 2000})
        run(lambda: parts_of(model, request(history)), model)
    assert ("thinking" in server.received[0].body) is asked


def test_what_is_not_asked_is_left_out() -> None:
    asked = ModelRequest(request_id="ä", system_prompt="", history=(UserItem(EventId("e1"), "Hi"),))
    with serving(answers(*text("ok"))) as server:
        model = model_at(server)
        run(lambda: parts_of(model, asked), model)
    (received,) = server.received
    assert set(received.body) == {"model", "messages", "max_tokens", "stream"}
    assert "x-client-request-id" not in received.headers


@pytest.mark.parametrize(
    "answer",
    [
        said_and_dropped(start(), begun(0), delta(0, text="I wri")),
        said_and_dropped(start(), *use('{"path":"a","content":"line1')),
        said(start(), *text("I write")),
        said(start(), *use('{"path":"a","content":"line1'), END),
        said(start(), b"event: content_block_delta\ndata: {}", b""),
        said(start()),
        said(),
        drops_before_the_answer,
        lambda to: to.plain(200, {"type": "message", "content": [{"type": "text", "text": "not streamed"}]}),
        said(start(), *use("{}", name=""), stop("tool_use"), END),
        said(start(), *text("I"), stop(None), END),
    ],
    ids=[
        "dropped in text",
        "dropped in arguments (r3-106)",
        "ended without a stop reason (r3-158)",
        "ended within arguments (r3-106)",
        "ended within a line",
        "ended after its beginning",
        "ended at once",
        "dropped before the answer",
        "not streamed",
        "a call that has no name",
        "an end that gives no reason",
    ],
)
def test_an_unfinished_answer_is_incomplete_and_never_a_step(answer: Callable[[Answering], None]) -> None:
    failure = failure_from(answer)
    assert isinstance(failure, ProviderStreamIncomplete)
    assert failure.failure_class is FailureClass.PROVIDER_STREAM_INCOMPLETE


DONE = stop("tool_use")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refuses(400, "invalid_request_error", "messages.3: bad"), "messages.3: bad"),
        (refuses(401, "authentication_error", f"invalid x-api-key {API_KEY}"), "[key]"),
        (refuses(403, "permission_error"), "403"),
        (refuses(404, "not_found_error"), "404"),
        (refuses(413, "request_too_large"), "413"),
        (refuses(500, "api_error"), "500"),
        (refuses(504, "timeout_error"), "504"),
        (said(start(), *text("I"), fails("api_error", "the server is on fire")), "on fire"),
        (said(start(), fails("overloaded_error", "too late to ask again")), "too late"),
        (said(fails("invalid_request_error", "bad at once")), "bad at once"),
        (said(start(), b"event: content_block_delta\ndata: \xff\xfe\n\n"), "not that of a message"),
        (said(start(), b"event: content_block_delta\ndata: {no json}\n\n"), "not that of a message"),
        (said(start(), b"event: content_block_delta\ndata: [1]\n\n"), "not that of a message"),
        (said(start(), begun(0), {"type": "content_block_delta", "index": 0, "delta": {"text": 7}}), "delta.text"),
        (said(start(), delta(0, text="I")), "had not begun"),
        (said(start(), begun(0), begun(0)), "twice"),
        (said(start(), begun(0), delta(0, partial_json="{}")), "'input_json_delta' in a block of type 'text'"),
        (said(start(), begun(0, "zz"), stop("end_turn")), "a block of type 'zz'"),
        (said(start(), *text("\ud800"), stop("end_turn")), "lone surrogate"),
        (said(start(), *text("Now."), DONE), "no tool call"),
        (said(start(), *text("I"), stop("end_turn"), *text("and", index=1)), "went on"),
        (said(start(), *use("{}", name="read\0file"), DONE), "control characters"),
        (said(start(), begun(0, "server_tool_use", input={}), delta(0, partial_json="{"), DONE), "no JSON"),
    ],
)
def test_an_answer_that_is_none_fails_with_the_reason_and_without_the_key(
    answer: Callable[[Answering], None], says: str
) -> None:
    failure = failure_from(answer)
    assert isinstance(failure, ProviderFailed)
    assert failure.failure_class is FailureClass.PROVIDER_FAILED
    assert says in failure.detail


@pytest.mark.parametrize(
    ("status", "kind", "headers", "refusal", "wait"),
    [
        (429, "rate_limit_error", {"retry-after": "7"}, RefusalKind.RATE_LIMITED, 7.0),
        (429, "rate_limit_error", {}, RefusalKind.RATE_LIMITED, None),
        (503, "api_error", {"retry-after": "0.5"}, RefusalKind.UNAVAILABLE, 0.5),
        (529, "overloaded_error", {}, RefusalKind.UNAVAILABLE, None),
    ],
)
def test_a_busy_provider_is_asked_once_and_says_how_long_to_wait(
    status: int, kind: str, headers: dict[str, str], refusal: RefusalKind, wait: float | None
) -> None:
    failure = failure_from(refuses(status, kind, headers=headers))
    assert isinstance(failure, ProviderRefusedBeforeOutput)
    assert (failure.kind, failure.status_code, failure.retry_after_seconds) == (refusal, status, wait)


@pytest.mark.parametrize(
    ("kind", "refusal"),
    [("overloaded_error", RefusalKind.UNAVAILABLE), ("rate_limit_error", RefusalKind.RATE_LIMITED)],
)
def test_a_stream_that_opens_with_being_busy_began_no_answer(kind: str, refusal: RefusalKind) -> None:
    failure = failure_from(said({"type": "ping"}, fails(kind)))
    assert isinstance(failure, ProviderRefusedBeforeOutput)
    assert failure.kind is refusal


def test_no_connection_is_a_refusal_that_may_be_asked_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: a connection is refused
        model = Anthropic("m", api_key=API_KEY, base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        parts, failure = run(lambda: failure_of(model), model)
    assert parts == []
    assert isinstance(failure, ProviderRefusedBeforeOutput)
    assert (failure.kind, failure.status_code) == (RefusalKind.NOT_CONNECTED, None)


def test_silence_beyond_the_bound_is_an_incomplete_answer() -> None:
    with serving(keeps_still) as server:
        model = model_at(server, read_timeout_seconds=0.2)
        _, failure = run(lambda: failure_of(model), model)
        assert server.count() == 1
    assert isinstance(failure, ProviderStreamIncomplete)


def test_a_provider_that_was_busy_answers_the_next_request() -> None:
    with serving(refuses(529, "overloaded_error"), answers(*text("ok"))) as server:
        model = model_at(server)

        async def twice() -> list[ModelPart]:
            await failure_of(model)
            return await parts_of(model)

        assert len(finished_steps(run(twice, model))) == 1
        assert server.count() == 2


def test_losing_the_connection_after_the_stop_reason_loses_nothing() -> None:
    (step,) = finished_steps(answer_to(said_and_dropped(start(), *text("Done."), stop("end_turn"))))
    assert step.blocks == (TextBlock("Done."),)


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
@pytest.mark.parametrize(
    "events",
    [
        use('{"path":"a","content":"line1'),
        use(),
        [begun(0, "tool_use", input={"path": "a", "content": "line1"})],
    ],
    ids=["within its arguments", "before them", "sent whole"],
)
def test_a_call_that_was_cut_short_is_no_call_with_arguments(events: list[Any], reason: str) -> None:
    """Field reports r3-106 and r3-110."""
    step = step_from(*events, reason=reason)
    assert step.finish_reason == reason
    (call,) = step.calls
    assert isinstance(parse_arguments(call.arguments_text), NotStrictJson)


def test_a_call_before_the_one_that_was_cut_short_is_whole() -> None:
    step = step_from(*use(index=0), *use('{"a', index=1), reason="max_tokens")
    assert [call.arguments_text for call in step.calls] == ["{}", '{"a']


def test_arguments_that_a_server_sends_at_once_are_arguments() -> None:
    step = step_from(begun(0, "tool_use", input={"path": "ä"}), reason="tool_use")
    assert [call.arguments_text for call in step.calls] == ['{"path": "ä"}']


@pytest.mark.parametrize("spelled", ['{"a": 1, "a": 2}', "{'path': 'a'}", '{"n": NaN}', " "])
def test_arguments_that_are_no_strict_json_are_given_raw(spelled: str) -> None:
    step = step_from(*use(spelled), reason="tool_use")
    assert [call.arguments_text for call in step.calls] == [spelled]
    assert isinstance(parse_arguments(spelled), NotStrictJson)


@pytest.mark.parametrize("call_id", ["", "same", None])
def test_repeated_and_empty_ids_leave_parallel_calls_apart(call_id: str | None) -> None:
    """Field report r3-027."""
    step = step_from(*use('{"a":1}', index=0, id=call_id), *use('{"a":2}', index=1, id=call_id), reason="tool_use")
    assert step.calls == (CallBlock(call_id, "read_file", '{"a":1}'), CallBlock(call_id, "read_file", '{"a":2}'))


def test_what_the_provider_did_itself_is_kept_whole_and_is_no_call_of_ours() -> None:
    search: dict[str, Json] = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result"}]}
    cite: Json = {"type": "web_search_result_location", "cited_text": "x"}
    step = step_from(
        {"type": "content_block_start", "index": 0, "content_block": search},
        delta(0, partial_json='{"query": '),
        delta(0, partial_json='"x"}'),
        {"type": "content_block_start", "index": 1, "content_block": found},
        begun(2, text="It"),
        delta(2, text=" says x."),
        delta(2, citation=cite),
        begun(3, "tool_use", caller={"type": "direct"}, cache_control={"type": "ephemeral"}),
        reason="tool_use",
    )
    assert step.blocks == (
        TextBlock("", {"anthropic_block": {**search, "input": {"query": "x"}}}),
        TextBlock("", {"anthropic_block": found}),
        TextBlock("It says x.", {"anthropic_block": {"citations": [cite]}}),
        CallBlock("toolu_3", "read_file", "{}", {"anthropic_block": {"caller": {"type": "direct"}}}),
    )


def test_a_surrogate_pair_that_was_cut_apart_is_joined_in_the_step_and_printable_in_the_deltas() -> None:
    parts = answer_to(answers(*text("Hi \ud83d", "\ude42!")))
    assert finished_steps(parts)[0].text == "Hi 🙂!"
    for part in parts:
        if isinstance(part, TextDelta):
            part.text.encode()


def test_an_illegal_history_is_refused_without_a_request() -> None:
    call = CallItem(EventId("e2"), StepId("s1"), ToolCallId("c1"), "read_file", {})
    with serving(refuses(500, "api_error")) as server:
        model = model_at(server)
        with pytest.raises(ProviderFailed, match=r"call_not_answered at position 1, call 'c1' \(1 calls, 0 results\)"):
            run(lambda: parts_of(model, request((UserItem(EventId("e1"), "Hi"), call))), model)
        assert server.count() == 0


def test_an_endless_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safepoint.adapters.models.streamed_text.ANSWER_CHARS_MAX", 100)
    failure = failure_from(answers(*text(*["x" * 40] * 3)))
    assert isinstance(failure, ProviderFailed)
    assert "more than 100 characters" in failure.detail


def test_the_account_names_endpoint_and_key_and_reveals_no_key() -> None:
    def account(**settings: str) -> str | None:
        return Anthropic("m", **{"api_key": API_KEY, "base_url": "http://a", **settings}).profile().account  # type: ignore[arg-type]

    assert account() == account(base_url="http://a/")
    assert len({account(), account(api_key="sk-other"), account(base_url="http://b")}) == 3
    assert API_KEY not in repr(Anthropic("m", api_key=API_KEY)) + str(account())


def test_settings_come_from_the_environment() -> None:
    environ = {"ANTHROPIC_API_KEY": f" {API_KEY}\n", "ANTHROPIC_BASE_URL": "http://a", "ANTHROPIC_MAX_TOKENS": "100"}
    profile = Anthropic.from_environment("m", environ=environ, window_tokens=8000).profile()
    assert profile == Anthropic("m", api_key=API_KEY, base_url="http://a", window_tokens=8000).profile()
    assert (profile.provider, profile.model, profile.window_tokens) == ("anthropic", "m", 8000)


@pytest.mark.parametrize(
    ("model", "environ", "says"),
    [
        ("m", {}, "ANTHROPIC_API_KEY is not set"),
        ("m", {"ANTHROPIC_API_KEY": "schlüssel"}, "characters that no key has"),
        ("m", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "localhost"}, "'localhost' does not begin with"),
        ("m", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MAX_TOKENS": "many"}, "ANTHROPIC_MAX_TOKENS is 'many'"),
        ("m", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_MAX_TOKENS": "0"}, "room for one token"),
        ("", {"ANTHROPIC_API_KEY": "k"}, "--model"),
    ],
)
def test_a_provider_that_cannot_work_says_so_before_anything_starts(
    model: str, environ: dict[str, str], says: str
) -> None:
    with pytest.raises(ProviderUnusable, match=says) as raised:
        Anthropic.from_environment(model, environ=environ)
    assert raised.value.next_step


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    really_import = builtins.__import__

    def without_the_client(name: str, *rest: object) -> object:
        if name == "anthropic":
            raise ImportError(name)
        return really_import(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_the_client)
    with pytest.raises(ProviderUnusable, match=r"pip install 'safepoint\[anthropic\]'"):
        Anthropic("m", api_key="k")
