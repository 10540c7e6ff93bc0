"""A step is recorded when the provider finished it, and asked for within bounds. SPEC F5 and section 14."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import BreaksOff, Planned, PlannedModel, Stall, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.live_runs import LiveRun
from safepoint.application.model_steps import RetryPolicy
from safepoint.application.run_agent import RunLimits, Screen
from safepoint.application.run_turn import TurnResult
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.model import ModelStepCompleted, ModelText, ModelThinking, ProviderAttempted
from safepoint.domain.events.run import RunEnded, RunError, RunStatus
from safepoint.domain.events.tool import ToolCalled
from safepoint.domain.reasons import FailureClass
from safepoint.domain.replay.items import CallItem, ResultItem, TextItem
from safepoint.ports.model_provider import ModelRequest, StartProof
from safepoint.ports.model_step import CallBlock, ModelPart, StepFinished, TextBlock, TextDelta, ThinkingBlock
from safepoint.ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    RefusalKind,
)

from .counted_tools import Counted
from .wiring import Process, beside, check_sound, go, until


class Naps:
    """Sleeps that are only written down."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def patient(naps: Naps, **policy: Any) -> RunLimits:
    return RunLimits(retries=RetryPolicy(sleep=naps, **policy))


def busy(retry_after_seconds: float | None = None) -> ProviderRefusedBeforeOutput:
    return ProviderRefusedBeforeOutput(
        RefusalKind.RATE_LIMITED, "slow down", status_code=429, retry_after_seconds=retry_after_seconds
    )


def turn(process: Process, steps: list[Planned], *tools: Callable[..., Any]) -> tuple[TurnResult, PlannedModel]:
    model = PlannedModel(steps)
    return go(lambda: process.turn("go", model, tools)), model


def nothing_of_a_step(process: Process, result: TurnResult) -> bool:
    kinds = (ModelText, ModelThinking, ToolCalled, ModelStepCompleted)
    return not [event for event in process.events(result.run_id) if isinstance(event, kinds)]


# Streams that break off


def test_text_that_was_streamed_and_never_finished_is_not_recorded_and_the_run_fails_typed_r3_158() -> None:
    process = Process()
    result, _ = turn(process, [BreaksOff("half a sen", ProviderStreamIncomplete("no finish reason"))])
    assert result.outcome.status is RunStatus.FAILED
    assert result.outcome.failure is FailureClass.PROVIDER_STREAM_INCOMPLETE
    assert nothing_of_a_step(process, result)
    (ended,) = process.of(result.run_id, RunEnded)
    assert ended.failure_class == FailureClass.PROVIDER_STREAM_INCOMPLETE
    (error,) = process.of(result.run_id, RunError)
    assert (error.error_class, error.code) == ("ProviderStreamIncomplete", "provider_stream_incomplete")
    check_sound(process, result.run_id)


class Fragments(PlannedModel):
    """Streams the beginning of a call's arguments, and no more."""

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        async for part in super().stream(request, proof):
            if isinstance(part, StepFinished):
                yield TextDelta('{"n":1,"m":"line1')
                return
            yield part


def test_streamed_fragments_never_become_a_call_r3_106() -> None:
    process, act = Process(), Counted()
    result = go(lambda: process.turn("go", Fragments([calls(("act", {"n": 1}))]), [act.function]))
    assert act.calls == []
    assert result.outcome.failure is FailureClass.PROVIDER_STREAM_INCOMPLETE
    assert nothing_of_a_step(process, result)


def test_a_stream_that_breaks_off_again_and_again_adds_one_failure_per_turn_and_the_session_stays_usable_r3_108() -> (
    None
):
    process, act = Process(), Counted()
    steps: list[Planned] = [BreaksOff("{", ProviderStreamIncomplete("cut")) for _ in range(3)]
    model = PlannedModel([*steps, calls(("act", {"n": 1})), says("done")])
    for _ in range(3):
        result = go(lambda: process.turn("go", model, [act.function]))
        assert process.topics(result.run_id) == ["run.opened", "message.user", "run.error", "run.ended"]
        check_sound(process, result.run_id)
    result = go(lambda: process.turn("go", model, [act.function]))
    assert result.outcome.status is RunStatus.COMPLETED
    assert act.calls == [1]


def test_a_step_that_broke_off_is_asked_for_again_with_the_same_history_r3_111() -> None:
    process, act = Process(), Counted()
    model = PlannedModel([calls(("act", {"n": 1})), BreaksOff("I", ProviderStreamIncomplete("cut"))])
    result = go(lambda: process.turn("go", model, [act.function]))
    assert result.outcome.failure is FailureClass.PROVIDER_STREAM_INCOMPLETE
    kinds = [type(item).__name__ for item in model.asked[1].request.history]
    later = PlannedModel([says("done")])
    go(lambda: process.turn("again", later, [act.function]))
    again = [type(item).__name__ for item in later.asked[0].request.history]
    assert again[: len(kinds)] == kinds


def test_partial_output_is_shown_while_it_comes_and_only_shown() -> None:
    shown: list[str] = []
    process = Process()
    screen = Screen(partial=lambda part: shown.append(part.text))
    steps: list[Planned] = [BreaksOff("half", ProviderStreamIncomplete("cut"))]
    result = go(lambda: process.turn("go", PlannedModel(steps), screen=screen))
    assert shown == ["half"]
    assert b"half" not in b"".join(process.stored_bytes(result.run_id))


# What a step is


def test_the_finish_reason_is_a_durable_part_of_the_step_r3_110() -> None:
    process = Process()
    result, _ = turn(process, [says("cut sho", finish_reason="length")])
    (completed,) = process.of(result.run_id, ModelStepCompleted)
    assert (completed.finish_reason, completed.model) == ("length", "planned")
    assert result.outcome.status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        (calls(CallBlock("c", "read\x00file", "{}")), FailureClass.PROVIDER_FAILED),
        (calls(CallBlock("c", "", "{}")), FailureClass.PROVIDER_FAILED),
        (calls(CallBlock("c", "x" * 201, "{}")), FailureClass.PROVIDER_FAILED),
        (calls(CallBlock("c", "act", "{}", provider_options=float("nan"))), FailureClass.PROVIDER_FAILED),
        (calls(CallBlock("\ud800", "act", "{}")), FailureClass.PROVIDER_FAILED),
        (says("\ud800"), FailureClass.PROVIDER_FAILED),
        (says("x" * 2**20), FailureClass.PROVIDER_FAILED),
        (says("fine", finish_reason=""), FailureClass.PROVIDER_STREAM_INCOMPLETE),
    ],
    ids=["NUL in a name", "no name", "long name", "NaN", "bad id", "lone surrogate", "too much text", "no reason"],
)
def test_a_step_that_cannot_be_recorded_is_refused_whole_before_it_is_durable_r3_024(
    step: StepFinished, failure: FailureClass
) -> None:
    process = Process()
    result, model = turn(process, [step])
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, failure)
    assert len(model.asked) == 1, "asking again could be answered twice"
    assert nothing_of_a_step(process, result)
    check_sound(process, result.run_id)
    later, _ = turn(process, [says("the session goes on")])
    assert later.outcome.status is RunStatus.COMPLETED


def test_repeated_empty_and_missing_call_ids_get_fresh_ones_so_that_each_call_has_its_own_result_r3_027() -> None:
    process = Process()

    def http_request(url: str) -> str:
        """Get."""
        return f"body of {url}"

    def asks(provider_id: str | None, url: str) -> CallBlock:
        return CallBlock(provider_id, "http_request", f'{{"url":"{url}"}}')

    one = calls(asks("http_request", "a"), asks("http_request", "b"), asks("", "c"), asks(None, "d"))
    two = calls(asks("http_request", "e"), asks("x" * 300, "f"), asks("ok", "g"))
    result, model = turn(process, [one, two, says("done")], http_request)
    called = process.of(result.run_id, ToolCalled)
    assert len({call.call_id for call in called}) == 7
    kept = [call.provider_call_id for call in called]
    assert kept == ["http_request", "http_request", "", None, "http_request", "x" * 300, "ok"]
    assert called[0].call_id == "http_request"
    assert called[6].call_id == "ok"
    history = model.asked[2].request.history
    asked = {item.call_id: item.args for item in history if isinstance(item, CallItem)}
    results = {item.call_id: item.result for item in history if isinstance(item, ResultItem)}
    assert {call_id: f"body of {args['url']}" for call_id, args in asked.items() if isinstance(args, dict)} == results
    check_sound(process, result.run_id)


def test_thinking_is_kept_byte_for_byte_before_the_calls_of_its_step() -> None:
    process, act = Process(), Counted()
    thinking = ThinkingBlock("  héé\n", signature="sig==", provider_options={"z": [1, None]})
    step = StepFinished(
        blocks=(thinking, TextBlock("so"), CallBlock("c", "act", '{"n":1}')), finish_reason="tool_calls"
    )
    result, _ = turn(process, [step, says("done")], act.function)
    (kept,) = process.of(result.run_id, ModelThinking)
    assert (kept.text, kept.signature, kept.provider_options) == ("  héé\n", "sig==", {"z": [1, None]})
    order = [topic for topic in process.topics(result.run_id) if topic.startswith(("model.", "tool.called"))]
    assert order[:4] == ["model.thinking", "model.text", "tool.called", "model.step_completed"]


def test_all_facts_of_a_step_are_one_commit() -> None:
    process, act = Process(), Counted()
    turn(process, [calls(("act", {"n": 1}), ("act", {"n": 2}), text="both"), says("done")], act.function)
    kinds = [[event.event.topic for event in commit.events] for commit in process.events_store.commits]
    assert ["model.text.v1", "tool.called.v1", "tool.called.v1", "model.step_completed.v1"] in kinds


def test_a_step_that_could_not_be_recorded_is_never_acted_on() -> None:
    process, act = Process(), Counted()
    process.events_store.fail_at(ModelStepCompleted.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        turn(process, [calls(("act", {"n": 1}))], act.function)
    assert act.calls == []


# Asking again


def test_a_request_refused_before_output_is_made_again_under_the_same_proof_and_each_is_recorded() -> None:
    naps = Naps()
    process = Process(limits=patient(naps))
    refusals = [
        busy(),
        ProviderRefusedBeforeOutput(RefusalKind.UNAVAILABLE, "down", status_code=503),
        ProviderRefusedBeforeOutput(RefusalKind.NOT_CONNECTED, "no route"),
    ]
    result, model = turn(process, [*refusals, says("done")])
    assert result.outcome.status is RunStatus.COMPLETED
    attempts = process.of(result.run_id, ProviderAttempted)
    assert [(one.attempt, one.failure, one.status_code) for one in attempts] == [
        (1, "rate_limited", 429),
        (2, "unavailable", 503),
        (3, "not_connected", None),
    ]
    assert naps.seconds == [0.5, 1.0, 2.0]
    assert {asked.run_id for asked in model.asked} == {result.run_id}
    assert len({asked.request.request_id for asked in model.asked}) == 1, "one step, asked for again"
    check_sound(process, result.run_id)


def test_a_provider_that_keeps_refusing_ends_the_run_after_a_bounded_number_of_requests() -> None:
    naps = Naps()
    process = Process(limits=patient(naps, attempts_max=3))
    result, model = turn(process, [busy() for _ in range(9)])
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.PROVIDER_FAILED)
    assert len(model.asked) == 3
    assert len(process.of(result.run_id, ProviderAttempted)) == 3
    assert len(naps.seconds) == 2
    check_sound(process, result.run_id)


def test_attempts_are_counted_for_each_step_anew() -> None:
    naps = Naps()
    process, act = Process(limits=patient(naps, attempts_max=2)), Counted()
    result, _ = turn(process, [busy(), calls(("act", {"n": 1})), busy(), says("done")], act.function)
    assert result.outcome.status is RunStatus.COMPLETED
    assert [one.attempt for one in process.of(result.run_id, ProviderAttempted)] == [1, 1]


@pytest.mark.parametrize(
    ("asked_seconds", "waited_seconds"), [(None, [0.5]), (0.0, [0.5]), (0.1, [0.5]), (7.0, [7.0]), (60.0, [60.0])]
)
def test_the_provider_is_waited_for_as_long_as_it_asks(
    asked_seconds: float | None, waited_seconds: list[float]
) -> None:
    naps = Naps()
    process = Process(limits=patient(naps))
    result, _ = turn(process, [busy(asked_seconds), says("done")])
    assert result.outcome.status is RunStatus.COMPLETED
    assert naps.seconds == waited_seconds


def test_a_provider_that_asks_for_longer_than_the_bound_is_not_asked_again() -> None:
    naps = Naps()
    process = Process(limits=patient(naps))
    result, model = turn(process, [busy(3600.0), says("too early")])
    assert result.outcome.failure is FailureClass.PROVIDER_FAILED
    assert len(model.asked) == 1
    assert naps.seconds == []
    assert len(process.of(result.run_id, ProviderAttempted)) == 1


def test_waits_grow_up_to_their_bound() -> None:
    naps = Naps()
    process = Process(limits=patient(naps, attempts_max=6, wait_seconds_max=3.0))
    turn(process, [*[busy() for _ in range(5)], says("done")])
    assert naps.seconds == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_refusal_that_comes_after_output_is_never_taken_as_one_from_before() -> None:
    naps = Naps()
    process = Process(limits=patient(naps))
    result, model = turn(process, [BreaksOff("I was", busy()), says("twice")])
    assert result.outcome.failure is FailureClass.PROVIDER_STREAM_INCOMPLETE
    assert len(model.asked) == 1
    assert naps.seconds == []


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ProviderFailed("bad key", status_code=401), FailureClass.PROVIDER_FAILED),
        (ProviderStreamIncomplete("cut"), FailureClass.PROVIDER_STREAM_INCOMPLETE),
    ],
)
def test_what_the_provider_refused_for_good_is_not_asked_again(error: ProviderError, failure: FailureClass) -> None:
    process = Process()
    result, model = turn(process, [error, says("no")])
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, failure)
    assert result.outcome.detail == error.detail
    assert len(model.asked) == 1
    assert process.of(result.run_id, ProviderAttempted) == []
    check_sound(process, result.run_id)


def test_an_adapter_that_breaks_fails_the_run_typed_and_without_its_message() -> None:
    class Broken(PlannedModel):
        async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
            if request.request_id == "":
                yield TextDelta("a generator must yield somewhere")
            raise KeyError("sk-secret")

    process = Process()
    result = go(lambda: process.turn("go", Broken([])))
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.PROVIDER_FAILED)
    assert "sk-secret" not in result.outcome.detail
    assert b"sk-secret" not in b"".join(process.stored_bytes(result.run_id))
    check_sound(process, result.run_id)


def test_what_a_provider_says_after_its_finish_reason_changes_nothing() -> None:
    class Chatty(PlannedModel):
        async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
            yield says("first")
            yield says("second")
            raise ProviderStreamIncomplete("late")

    process = Process()
    result = go(lambda: process.turn("go", Chatty([])))
    assert (result.outcome.status, result.outcome.text) == (RunStatus.COMPLETED, "first")
    assert len(process.of(result.run_id, ModelStepCompleted)) == 1


def test_a_provider_that_cannot_be_closed_in_order_does_not_lose_its_finished_step() -> None:
    class Rude(PlannedModel):
        async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
            try:
                yield says("done")
            finally:
                raise OSError("connection reset")

    process = Process()
    result = go(lambda: process.turn("go", Rude([])))
    assert (result.outcome.status, result.outcome.text) == (RunStatus.COMPLETED, "done")


# Bounds


def test_a_run_ends_when_its_steps_are_used_up() -> None:
    process, act = Process(limits=RunLimits(steps_max=3)), Counted()
    result, model = turn(process, [calls(("act", {"n": 1}))] * 9, act.function)
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.STEP_LIMIT)
    assert len(model.asked) == 3
    assert act.calls == [1, 1, 1], "the calls of the last step are answered"
    check_sound(process, result.run_id)


def test_a_run_that_has_used_up_its_events_asks_for_no_further_step() -> None:
    process, act = Process(limits=RunLimits(events_max=8)), Counted()
    result, model = turn(process, [calls(("act", {"n": 1}))] * 9, act.function)
    assert result.outcome.failure is FailureClass.STEP_LIMIT
    assert len(model.asked) == 2
    check_sound(process, result.run_id)


def test_a_model_that_only_thinks_aloud_ends_the_run_in_one_step() -> None:
    process = Process()
    result, _ = turn(process, [StepFinished(blocks=(), finish_reason="stop")])
    assert (result.outcome.status, result.outcome.text) == (RunStatus.COMPLETED, "")
    check_sound(process, result.run_id)


# Stopping while a model is waited for


@pytest.mark.parametrize("planned", [Stall("so far"), Stall("")])
def test_a_stop_does_not_wait_for_the_model_and_keeps_nothing_of_its_answer(planned: Stall) -> None:
    process = Process()
    lives: list[LiveRun] = []
    model = PlannedModel([planned])

    async def work() -> TurnResult:
        async def stopping() -> None:
            await until(lambda: model.asked)
            assert await lives[0].cancel("ada")

        return await beside(stopping, process.turn("go", model, started=lives.append))

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    assert nothing_of_a_step(process, result)
    assert process.topics(result.run_id) == ["run.opened", "message.user", "run.cancel_requested", "run.ended"]
    check_sound(process, result.run_id)


def test_a_stop_ends_the_wait_before_the_next_attempt() -> None:
    lives: list[LiveRun] = []
    process = Process(limits=RunLimits(retries=RetryPolicy(sleep=lambda seconds: anyio.sleep_forever())))
    model = PlannedModel([busy(), says("never")])

    async def work() -> TurnResult:
        async def stopping() -> None:
            await until(lambda: process.of(process.head(), ProviderAttempted) if lives else None)
            await lives[0].cancel("ada")

        return await beside(stopping, process.turn("go", model, started=lives.append))

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    assert len(model.asked) == 1


def test_a_run_that_is_stopped_before_its_first_step_asks_no_model() -> None:
    process = Process()
    model = PlannedModel([says("no")])

    def stop(live: LiveRun) -> None:
        live.stopping.ask("ada")
        live.stopping.request()

    result = go(lambda: process.turn("go", model, started=stop))
    assert result.outcome.status is RunStatus.CANCELLED
    assert model.asked == []
    assert process.topics(result.run_id) == ["run.opened", "message.user", "run.cancel_requested", "run.ended"]


def test_the_model_is_shown_its_own_items_in_the_order_in_which_they_are_recorded() -> None:
    process, act = Process(), Counted()
    steps: list[Planned] = [calls(("act", {"n": 1}), text="one"), calls(("act", {"n": 2}), text="two"), says("x")]
    _, model = turn(process, steps, act.function)
    texts = [item.text for item in model.asked[2].request.history if isinstance(item, TextItem)]
    assert texts == ["one", "two"]
    assert [asked.request.system_prompt for asked in model.asked] == ["Be careful."] * 3
