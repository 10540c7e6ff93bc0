"""The contract of `ModelProvider`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

import anyio
import pytest

from ...domain.events.event import Json
from ...domain.identifiers import EventId, RunId, StepId, ToolCallId
from ...domain.planning.planner import ORDINARY_FINISHES
from ...domain.replay.items import CallItem, HostItem, Item, ResultItem, TextItem, ThinkingItem, UserItem
from ...domain.tool_arguments import ParsedArguments, parse_arguments
from ..model_provider import ModelProvider, ModelRequest, OfferedTool
from ..model_step import CallBlock, ModelPart, StepFinished, TextDelta
from ..provider_failures import ProviderError, ProviderFailed, ProviderRefusedBeforeOutput, ProviderStreamIncomplete

T = TypeVar("T")

TEXT = "I read both files: Grüße, 世界 🙂."
"""What the model says in the situation `ANSWERS_WITH_TEXT`, in several deltas."""
CALLS: tuple[tuple[str, Json], ...] = (("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}))
"""The calls of the one step in `ANSWERS_WITH_CALLS`."""
DEADLINE_SECONDS = 30.0


class Situation(StrEnum):
    """How the provider behind the adapter behaves, to every request alike."""

    ANSWERS_WITH_TEXT = "answers_with_text"
    """It says `TEXT` and finishes with `stop`."""
    ANSWERS_WITH_CALLS = "answers_with_calls"
    """It makes `CALLS` and finishes with `tool_calls`."""
    IS_BUSY = "is_busy"
    """It answers 503, or 429, before any output."""
    REFUSES = "refuses"
    """It refuses for good, such as with 400."""
    BREAKS_OFF = "breaks_off"
    """It says the beginning of a text, and the answer ends without a finish reason."""
    FALLS_SILENT = "falls_silent"
    """It accepts the request and then keeps still; whatever it said before is no finished step."""


class Staged(NamedTuple):
    """An adapter in a situation, and how many requests the provider behind it has seen."""

    provider: ModelProvider
    requests: Callable[[], int]


Stage: TypeAlias = Callable[[Situation], Staged]


RUN_ID = RunId("run-of-the-kit")


@dataclass(frozen=True)
class KitProof:
    """Stands for a start proof; real ones are the application's."""

    run_id: RunId = RUN_ID


def _item_of_every_kind() -> tuple[Item, ...]:
    first, second, step = ToolCallId("c1"), ToolCallId("c2"), StepId("step-1")
    return (
        UserItem(EventId("e1"), "Read the files."),
        HostItem(EventId("e2"), "Note from the host: one file is new.", "host_note"),
        ThinkingItem(EventId("e3"), step, "Two files, two calls."),
        TextItem(EventId("e4"), step, "I read them."),
        CallItem(EventId("e5"), step, first, "read_file", {"path": "a.txt"}),
        CallItem(EventId("e6"), step, second, "read_file", args_text='{"path": "b.t'),
        ResultItem(EventId("e7"), step, first, "read_file", {"content": "hi"}, is_error=False),
        ResultItem(EventId("e8"), step, second, "read_file", "Not executed: not strict JSON.", is_error=True),
        UserItem(EventId("e9"), "Go on.", steering=True),
    )


HISTORY = _item_of_every_kind()
READ_FILE = OfferedTool(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": False},
)


def request(history: tuple[Item, ...] = HISTORY) -> ModelRequest:
    """A request with one tool."""
    return ModelRequest(request_id="request-1", system_prompt="Be brief.", history=history, tools=(READ_FILE,))


async def parts_of(provider: ModelProvider, asked: ModelRequest | None = None) -> list[ModelPart]:
    """Every part of one answer."""
    async with aclosing(provider.stream(asked or request(), KitProof())) as stream:
        return [part async for part in stream]


async def failure_of(provider: ModelProvider) -> tuple[list[ModelPart], ProviderError]:
    """The parts that came before the failure, and the failure."""
    parts: list[ModelPart] = []
    async with aclosing(provider.stream(request(), KitProof())) as stream:
        try:
            async for part in stream:
                parts.append(part)  # noqa: PERF401  # what came before the failure is wanted
        except ProviderError as failure:
            return parts, failure
    pytest.fail(f"no failure was raised; these parts came: {parts!r}")


def run(scenario: Callable[[], Awaitable[T]], provider: ModelProvider) -> T:
    """Run a scenario in an event loop and close the provider in it."""

    async def whole() -> T:
        try:
            with anyio.fail_after(DEADLINE_SECONDS):
                return await scenario()
        finally:
            await provider.aclose()

    return anyio.run(whole)


def finished_steps(parts: list[ModelPart]) -> list[StepFinished]:
    """The finished steps among the parts."""
    return [part for part in parts if isinstance(part, StepFinished)]


class ModelProviderContract:
    """Subclass it, override `stage`, and pytest checks an implementation of the port."""

    @pytest.fixture
    def stage(self) -> Stage:
        """Makes the adapter over a provider that behaves as the situation says."""
        pytest.fail("override the fixture `stage`")

    def test_the_profile_is_stable_and_asks_nobody(self, stage: Stage) -> None:
        provider, requests = stage(Situation.ANSWERS_WITH_TEXT)
        profile = provider.profile()
        assert profile == provider.profile()
        assert profile.provider
        assert profile.model
        assert requests() == 0

    def test_deltas_come_first_and_exactly_one_finished_step_comes_last(self, stage: Stage) -> None:
        provider, requests = stage(Situation.ANSWERS_WITH_TEXT)
        parts = run(lambda: parts_of(provider), provider)
        assert [type(part) for part in parts[:-1]].count(StepFinished) == 0
        step = parts[-1]
        assert isinstance(step, StepFinished)
        assert step.text == TEXT
        assert step.calls == ()
        assert step.finish_reason in ORDINARY_FINISHES
        assert requests() == 1

    def test_the_deltas_together_are_the_text_of_the_step(self, stage: Stage) -> None:
        provider, _ = stage(Situation.ANSWERS_WITH_TEXT)
        parts = run(lambda: parts_of(provider), provider)
        assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == TEXT

    def test_parallel_calls_come_whole_and_in_order_with_the_finished_step_alone(self, stage: Stage) -> None:
        provider, requests = stage(Situation.ANSWERS_WITH_CALLS)
        parts = run(lambda: parts_of(provider), provider)
        (step,) = finished_steps(parts)
        assert not any(isinstance(part, CallBlock) for part in parts)
        assert [call.tool_name for call in step.calls] == [name for name, _ in CALLS]
        assert [parse_arguments(call.arguments_text) for call in step.calls] == [
            ParsedArguments(args) for _, args in CALLS
        ]
        assert step.finish_reason in ORDINARY_FINISHES
        assert requests() == 1

    def test_a_busy_provider_is_refused_before_output_and_asked_once(self, stage: Stage) -> None:
        provider, requests = stage(Situation.IS_BUSY)
        parts, failure = run(lambda: failure_of(provider), provider)
        assert parts == []
        assert isinstance(failure, ProviderRefusedBeforeOutput)
        assert failure.retry_after_seconds is None or failure.retry_after_seconds >= 0
        assert requests() == 1

    def test_a_refused_request_may_be_asked_again_by_the_caller(self, stage: Stage) -> None:
        provider, requests = stage(Situation.IS_BUSY)

        async def twice() -> None:
            await failure_of(provider)
            await failure_of(provider)

        run(twice, provider)
        assert requests() == 2

    def test_a_request_that_is_refused_for_good_says_so_and_is_made_once(self, stage: Stage) -> None:
        provider, requests = stage(Situation.REFUSES)
        parts, failure = run(lambda: failure_of(provider), provider)
        assert parts == []
        assert isinstance(failure, ProviderFailed)
        assert failure.detail
        assert requests() == 1

    def test_an_answer_that_breaks_off_is_never_a_step_and_never_asked_for_again(self, stage: Stage) -> None:
        """Field reports r3-106, r3-108, r3-158."""
        provider, requests = stage(Situation.BREAKS_OFF)
        parts, failure = run(lambda: failure_of(provider), provider)
        assert finished_steps(parts) == []
        assert isinstance(failure, ProviderStreamIncomplete)
        assert requests() == 1

    def test_cancelling_ends_a_request_that_is_not_answered(self, stage: Stage) -> None:
        provider, requests = stage(Situation.FALLS_SILENT)
        parts: list[ModelPart] = []

        async def ask() -> None:
            async with aclosing(provider.stream(request(), KitProof())) as stream:
                async for part in stream:
                    parts.append(part)  # noqa: PERF401  # what came before the cancellation is wanted

        async def cancelled() -> bool:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                while requests() == 0:  # noqa: ASYNC110  # a provider elsewhere sets no event of ours
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            return tasks.cancel_scope.cancelled_caught

        run(cancelled, provider)
        assert finished_steps(parts) == []
        assert requests() == 1

    def test_whoever_stops_listening_can_ask_again(self, stage: Stage) -> None:
        provider, requests = stage(Situation.ANSWERS_WITH_TEXT)

        async def stop_after_the_first() -> list[ModelPart]:
            async with aclosing(provider.stream(request(), KitProof())) as stream:
                await anext(stream)
            return await parts_of(provider)

        assert len(finished_steps(run(stop_after_the_first, provider))) == 1
        assert requests() == 2

    def test_several_runs_ask_at_once(self, stage: Stage) -> None:
        provider, requests = stage(Situation.ANSWERS_WITH_TEXT)
        texts: list[str] = []

        async def ask() -> None:
            texts.extend(step.text for step in finished_steps(await parts_of(provider)))

        async def together() -> None:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ask)

        run(together, provider)
        assert texts == [TEXT] * 3
        assert requests() == 3

    def test_nothing_is_asked_before_the_stream_is_read(self, stage: Stage) -> None:
        provider, requests = stage(Situation.ANSWERS_WITH_TEXT)

        async def never_read() -> None:
            await provider.stream(request(), KitProof()).aclose()

        run(never_read, provider)
        assert requests() == 0

    def test_closing_twice_is_no_error(self, stage: Stage) -> None:
        provider, _ = stage(Situation.ANSWERS_WITH_TEXT)

        async def ask_and_close() -> None:
            await parts_of(provider)
            await provider.aclose()

        run(ask_and_close, provider)
