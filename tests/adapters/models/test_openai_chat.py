"""The OpenAI adapter against a real server on loopback, behaving well and badly. SPEC section 14, F5."""

from __future__ import annotations

import builtins
import socket
from collections.abc import Callable

import pytest

from safepoint.adapters.models.client_failures import retry_after_seconds
from safepoint.adapters.models.openai_chat import OpenAIChat
from safepoint.domain.events.model import Usage
from safepoint.domain.identifiers import EventId, StepId, ToolCallId
from safepoint.domain.reasons import FailureClass
from safepoint.domain.replay.items import CallItem, UserItem
from safepoint.domain.tool_arguments import NotStrictJson, parse_arguments
from safepoint.ports.contract_kit.model_provider import failure_of, finished_steps, parts_of, request, run
from safepoint.ports.model_provider import ModelRequest
from safepoint.ports.model_step import CallBlock, ModelPart, StepFinished, TextBlock, TextDelta, ThinkingBlock
from safepoint.ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    ProviderUnusable,
    RefusalKind,
)

from .chat_server import (
    API_KEY,
    Answering,
    ChatServer,
    chunk,
    drops_before_the_answer,
    fragment,
    keeps_still,
    refuses,
    serving,
    streams,
    streams_and_drops,
)

DONE = chunk(finish="tool_calls")


def model_at(server: ChatServer) -> OpenAIChat:
    return OpenAIChat("test-model", api_key=API_KEY, base_url=server.base_url)


def answer_to(answer: Callable[[Answering], None], asked: ModelRequest | None = None) -> list[ModelPart]:
    """The parts of one answer, of which the server made exactly one."""
    with serving(answer) as server:
        model = model_at(server)
        parts = run(lambda: parts_of(model, asked), model)
        assert server.count() == 1
        return parts


def step_from(*chunks: object) -> StepFinished:
    (step,) = finished_steps(answer_to(streams(*chunks)))
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


def test_a_step_with_text_reasoning_and_parallel_calls_comes_whole() -> None:
    parts = answer_to(
        streams(
            chunk(""),
            chunk(reasoning_content="Two "),
            chunk(reasoning_content="files."),
            chunk("I read "),
            chunk("both."),
            chunk(
                calls=[
                    fragment(0, "", call_id="call_a", name="read_file"),
                    fragment(1, "", call_id="call_b", name="read_file"),
                ]
            ),
            chunk(calls=[fragment(1, '{"path":'), fragment(0, '{"path": "a')]),
            chunk(calls=[fragment(0, '.txt"}')]),
            chunk(calls=[fragment(1, '"b.txt"}')]),
            chunk(finish="tool_calls"),
            chunk(usage=(120, 17)),
        )
    )
    assert [part.text for part in parts[:-1] if isinstance(part, TextDelta)] == ["I read ", "both."]
    assert parts[-1] == StepFinished(
        blocks=(
            ThinkingBlock("Two files."),
            TextBlock("I read both."),
            CallBlock("call_a", "read_file", '{"path": "a.txt"}'),
            CallBlock("call_b", "read_file", '{"path":"b.txt"}'),
        ),
        finish_reason="tool_calls",
        model="test-model-2024",
        provider_response_id="chatcmpl-1",
        usage=Usage(input_tokens=120, output_tokens=17),
    )


def test_the_request_is_made_once_with_everything_that_was_asked() -> None:
    with serving(streams(chunk("ok"), chunk(finish="stop"))) as server:
        model = model_at(server)
        run(lambda: parts_of(model), model)
    (received,) = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {API_KEY}"
    assert received.headers["x-client-request-id"] == "request-1"
    assert received.body["model"] == "test-model"
    assert received.body["stream"] is True
    assert received.body["stream_options"] == {"include_usage": True}
    assert received.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in received.body["messages"]] == [
        "system", "user", "user", "assistant", "tool", "tool", "user",
    ]  # fmt: skip
    assert [tool["function"]["name"] for tool in received.body["tools"]] == ["read_file"]


def test_no_tools_are_no_tools_and_not_an_empty_list() -> None:
    asked = ModelRequest(request_id="ä", system_prompt="", history=(UserItem(EventId("e1"), "Hi"),))
    with serving(streams(chunk("ok"), chunk(finish="stop"))) as server:
        model = model_at(server)
        run(lambda: parts_of(model, asked), model)
    (received,) = server.received
    assert "tools" not in received.body
    assert received.body["messages"] == [{"role": "user", "content": "Hi"}]
    assert "x-client-request-id" not in received.headers


@pytest.mark.parametrize(
    "answer",
    [
        streams_and_drops(chunk("I wri"), chunk("te")),
        streams_and_drops(
            chunk(calls=[fragment(0, '{"path":"a","content":"line1', call_id="call_a", name="write_file")])
        ),
        streams(chunk("I write"), done=False),
        streams(chunk("I write")),
        streams(chunk(calls=[fragment(0, '{"path":"a","content":"line1', call_id="call_a", name="write_file")])),
        streams(b'data: {"id": "chatcmpl-1", "choi', done=False),
        streams(done=False),
        drops_before_the_answer,
        lambda to: to.plain(200, {"choices": [{"message": {"content": "not streamed"}, "finish_reason": "stop"}]}),
        streams(chunk(calls=[fragment(0, "{}", call_id="call_a")]), DONE),
    ],
    ids=[
        "dropped in text",
        "dropped in arguments (r3-106)",
        "ended without a finish and without a mark",
        "ended without a finish (r3-158)",
        "ended within arguments (r3-106)",
        "ended within a line",
        "ended at once",
        "dropped before the answer",
        "not streamed",
        "a call that has no name",
    ],
)
def test_an_unfinished_answer_is_incomplete_and_never_a_step(answer: Callable[[Answering], None]) -> None:
    failure = failure_from(answer)
    assert isinstance(failure, ProviderStreamIncomplete)
    assert failure.failure_class is FailureClass.PROVIDER_STREAM_INCOMPLETE


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refuses(400, "messages[3]: bad"), "messages[3]: bad"),
        (refuses(401, f"Incorrect API key: {API_KEY}"), "[key]"),
        (refuses(404), "404"),
        (refuses(500), "500"),
        (refuses(504), "504"),
        (refuses(429, "pay first", code="insufficient_quota"), "pay first"),
        (streams(chunk("I"), {"error": {"message": "the server is on fire"}}), "on fire"),
        (streams(chunk("I"), chunk(finish="stop"), {"error": {"message": "not counted"}}), "not counted"),
        (streams(chunk("I"), b"data: \xff\xfe\n\n"), "not that of a chat completion"),
        (streams(chunk("I"), b"data: {no json}\n\n"), "not that of a chat completion"),
        (streams(chunk("I"), b"data: [1]\n\n"), "not that of a chat completion"),
        (streams(b"data: null\n\n"), "not that of a chat completion"),
        (streams({"choices": [{"index": 0, "delta": {"content": 7}}]}), "content"),
        (streams(chunk("\ud800"), chunk(finish="stop")), "lone surrogate"),
        (streams(chunk(finish="tool_calls")), "no tool call"),
        (streams(chunk("I"), chunk(finish="stop"), chunk("and")), "went on"),
        (streams(chunk(calls=[fragment(0, "{}", name="read\0file")]), DONE), "control characters"),
        (
            streams(chunk(calls=[fragment(0, name="read")]), chunk(calls=[fragment(0, "{}", name="write")]), DONE),
            "changed the name",
        ),
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
    ("status", "headers", "kind", "wait"),
    [
        (429, {"retry-after": "7"}, RefusalKind.RATE_LIMITED, 7.0),
        (429, {}, RefusalKind.RATE_LIMITED, None),
        (503, {"retry-after": "0.5"}, RefusalKind.UNAVAILABLE, 0.5),
    ],
)
def test_a_busy_provider_is_asked_once_and_says_how_long_to_wait(
    status: int, headers: dict[str, str], kind: RefusalKind, wait: float | None
) -> None:
    failure = failure_from(refuses(status, headers=headers))
    assert isinstance(failure, ProviderRefusedBeforeOutput)
    assert (failure.kind, failure.status_code, failure.retry_after_seconds) == (kind, status, wait)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 -0000", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_the_time_to_wait_is_understood_in_each_of_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


def test_no_connection_is_a_refusal_that_may_be_asked_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: a connection is refused
        model = OpenAIChat("m", api_key=API_KEY, base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        parts, failure = run(lambda: failure_of(model), model)
    assert parts == []
    assert isinstance(failure, ProviderRefusedBeforeOutput)
    assert (failure.kind, failure.status_code) == (RefusalKind.NOT_CONNECTED, None)


def test_a_lost_connection_is_told_from_an_answer_that_ended() -> None:
    assert "connection was lost in the middle" in failure_from(streams_and_drops(chunk("I"))).detail
    assert "connection was lost before the answer" in failure_from(drops_before_the_answer).detail
    assert "ended without a finish reason" in failure_from(streams(chunk("I"))).detail


def test_silence_beyond_the_bound_is_an_incomplete_answer() -> None:
    with serving(keeps_still) as server:
        model = OpenAIChat("m", api_key=API_KEY, base_url=server.base_url, read_timeout_seconds=0.2)
        _, failure = run(lambda: failure_of(model), model)
        assert server.count() == 1
    assert isinstance(failure, ProviderStreamIncomplete)


def test_a_provider_that_was_busy_answers_the_next_request() -> None:
    with serving(refuses(503), streams(chunk("ok"), chunk(finish="stop"))) as server:
        model = model_at(server)

        async def twice() -> list[ModelPart]:
            await failure_of(model)
            return await parts_of(model)

        assert len(finished_steps(run(twice, model))) == 1
        assert server.count() == 2


def test_losing_the_connection_after_the_finish_costs_the_usage_alone() -> None:
    (step,) = finished_steps(answer_to(streams_and_drops(chunk("Done."), chunk(finish="stop"))))
    assert step == StepFinished(
        blocks=(TextBlock("Done."),), finish_reason="stop", model="test-model-2024", provider_response_id="chatcmpl-1"
    )


def test_a_step_that_was_cut_for_length_says_so_and_its_cut_arguments_are_no_call() -> None:
    """Field reports r3-106 and r3-110."""
    step = step_from(
        chunk(calls=[fragment(0, '{"path":"a","content":"line1', call_id="call_a", name="write_file")]),
        chunk(finish="length"),
    )
    assert step.finish_reason == "length"
    (call,) = step.calls
    assert isinstance(parse_arguments(call.arguments_text), NotStrictJson)


def test_a_cut_call_without_any_arguments_is_not_taken_for_one_without_arguments() -> None:
    step = step_from(chunk(calls=[fragment(0, call_id="call_a", name="list_files")]), chunk(finish="length"))
    assert [call.arguments_text for call in step.calls] == [""]


def test_a_finished_call_without_arguments_has_empty_ones() -> None:
    step = step_from(chunk(calls=[fragment(0, call_id="call_a", name="list_files")]), DONE)
    assert [call.arguments_text for call in step.calls] == ["{}"]


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "{'path': 'a'}", '{"n": NaN}', '{"a": "\\ud800"}', " "])
def test_arguments_that_are_no_strict_json_are_given_raw(text: str) -> None:
    step = step_from(chunk(calls=[fragment(0, text, call_id="call_a", name="write_file")]), DONE)
    assert [call.arguments_text for call in step.calls] == [text]
    assert isinstance(parse_arguments(text), NotStrictJson)


@pytest.mark.parametrize("call_id", ["", "read_file", None])
def test_repeated_and_empty_ids_leave_parallel_calls_apart(call_id: str | None) -> None:
    """Field report r3-027."""
    step = step_from(
        chunk(calls=[fragment(0, '{"path":"a"}', call_id=call_id, name="read_file")]),
        chunk(calls=[fragment(1, '{"path":"b"}', call_id=call_id, name="read_file")]),
        DONE,
    )
    assert step.calls == (
        CallBlock(call_id, "read_file", '{"path":"a"}'),
        CallBlock(call_id, "read_file", '{"path":"b"}'),
    )


@pytest.mark.parametrize("index", [0, None])
def test_a_server_that_uses_one_index_or_none_is_understood_by_ids(index: int | None) -> None:
    step = step_from(
        chunk(calls=[fragment(index, '{"path":', call_id="call_a", name="read_file")]),
        chunk(calls=[fragment(index, '"a"}')]),
        chunk(calls=[fragment(index, '{"path":"b"}', call_id="call_b", name="read_file")]),
        DONE,
    )
    assert step.calls == (
        CallBlock("call_a", "read_file", '{"path":"a"}'),
        CallBlock("call_b", "read_file", '{"path":"b"}'),
    )


def test_a_name_that_is_sent_again_with_each_fragment_is_one_name() -> None:
    step = step_from(
        chunk(calls=[fragment(0, '{"a":', call_id="call_a", name="read_file")]),
        chunk(calls=[fragment(0, "1}", call_id="call_a", name="read_file")]),
        DONE,
    )
    assert step.calls == (CallBlock("call_a", "read_file", '{"a":1}'),)


def test_a_surrogate_pair_that_was_cut_apart_is_joined_in_the_step_and_printable_in_the_deltas() -> None:
    parts = answer_to(streams(chunk("Hi \ud83d"), chunk("\ude42!"), chunk(finish="stop")))
    assert finished_steps(parts)[0].text == "Hi 🙂!"
    for part in parts:
        if isinstance(part, TextDelta):
            part.text.encode()


def test_a_second_choice_is_ignored_and_a_refusal_is_text() -> None:
    other = chunk("other")
    other["choices"][0]["index"] = 1  # type: ignore[index]
    step = step_from(chunk(None, refusal="I will not."), other, chunk(finish="stop"))
    assert step.blocks == (TextBlock("I will not."),)


def test_an_illegal_history_is_refused_without_a_request() -> None:
    call = CallItem(EventId("e2"), StepId("s1"), ToolCallId("c1"), "read_file", {})
    with serving(refuses(500)) as server:
        model = model_at(server)
        with pytest.raises(ProviderFailed, match=r"call_not_answered at position 1, call 'c1' \(1 calls, 0 results\)"):
            run(lambda: parts_of(model, request((UserItem(EventId("e1"), "Hi"), call))), model)
        assert server.count() == 0


def test_an_endless_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safepoint.adapters.models.streamed_text.ANSWER_CHARS_MAX", 100)
    failure = failure_from(streams(*[chunk("x" * 40)] * 3, chunk(finish="stop")))
    assert isinstance(failure, ProviderFailed)
    assert "more than 100 characters" in failure.detail


def test_the_account_names_endpoint_and_account_and_reveals_no_key() -> None:
    def account(**settings: str) -> str | None:
        return OpenAIChat("m", **{"api_key": API_KEY, "base_url": "http://a/v1", **settings}).profile().account  # type: ignore[arg-type]

    assert account() == account(base_url="http://a/v1/")
    assert len({account(), account(api_key="sk-other"), account(base_url="http://b/v1"), account(project="p")}) == 4
    assert account(organization="o") == account(organization="o", api_key="sk-rotated")
    assert API_KEY not in repr(OpenAIChat("m", api_key=API_KEY)) + str(account())


def test_settings_come_from_the_environment() -> None:
    environ = {"OPENAI_API_KEY": f" {API_KEY}\n", "OPENAI_BASE_URL": "http://a/v1"}
    profile = OpenAIChat.from_environment("m", environ=environ, window_tokens=8000).profile()
    assert profile == OpenAIChat("m", api_key=API_KEY, base_url="http://a/v1", window_tokens=8000).profile()
    assert (profile.provider, profile.model, profile.window_tokens) == ("openai", "m", 8000)


@pytest.mark.parametrize(
    ("model", "environ", "says"),
    [
        ("m", {}, "OPENAI_API_KEY is not set"),
        ("m", {"OPENAI_API_KEY": "schlüssel"}, "characters that no key has"),
        ("m", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "localhost:8000"}, "'localhost:8000' does not begin with"),
        ("", {"OPENAI_API_KEY": "k"}, "--model"),
    ],
)
def test_a_provider_that_cannot_work_says_so_before_anything_starts(
    model: str, environ: dict[str, str], says: str
) -> None:
    with pytest.raises(ProviderUnusable, match=says) as raised:
        OpenAIChat.from_environment(model, environ=environ)
    assert raised.value.next_step


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    really_import = builtins.__import__

    def without_openai(name: str, *rest: object) -> object:
        if name == "openai":
            raise ImportError(name)
        return really_import(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_openai)
    with pytest.raises(ProviderUnusable, match=r"pip install 'safepoint\[openai\]'"):
        OpenAIChat("m", api_key="k")
