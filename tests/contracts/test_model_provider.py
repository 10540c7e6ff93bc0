"""Every model provider keeps the port's contract, and the contract catches those that do not."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from safepoint.adapters.memory.model_provider import BreaksOff, Planned, PlannedModel, Stall, calls, says
from safepoint.adapters.models.anthropic import Anthropic
from safepoint.adapters.models.openai_chat import OpenAIChat
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.ports.contract_kit.model_provider import (
    CALLS,
    TEXT,
    ModelProviderContract,
    Situation,
    Stage,
    Staged,
)
from safepoint.ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from safepoint.ports.model_step import ModelPart, StepFinished, TextBlock, TextDelta
from safepoint.ports.provider_failures import (
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    RefusalKind,
)

from ..adapters.models import message_events
from ..adapters.models.chat_server import (
    API_KEY,
    Answering,
    chunk,
    fragment,
    keeps_still,
    refuses,
    serving,
    streams,
    streams_and_drops,
)

PLANS: Mapping[Situation, Planned] = {
    Situation.ANSWERS_WITH_TEXT: says(TEXT),
    Situation.ANSWERS_WITH_CALLS: calls(*CALLS),
    Situation.IS_BUSY: ProviderRefusedBeforeOutput(RefusalKind.UNAVAILABLE, "busy", status_code=503),
    Situation.REFUSES: ProviderFailed("no"),
    Situation.BREAKS_OFF: BreaksOff("I re", ProviderStreamIncomplete("broke off")),
    Situation.FALLS_SILENT: Stall("I"),
}


class TestPlannedModel(ModelProviderContract):
    @pytest.fixture
    def stage(self) -> Stage:
        def staged(situation: Situation) -> Staged:
            model = PlannedModel([PLANS[situation]] * 3)
            return Staged(model, lambda: len(model.asked))

        return staged


_STEPS: list[dict[str, object]] = [{"text": "I read them."}]  # the history of the contract has one step
SCRIPTS: Mapping[Situation, dict[str, object]] = {
    Situation.ANSWERS_WITH_TEXT: {"steps": [*_STEPS, {"text": TEXT}]},
    Situation.ANSWERS_WITH_CALLS: {
        "steps": [*_STEPS, {"calls": [{"tool": name, "args": args} for name, args in CALLS]}]
    },
    Situation.IS_BUSY: {"steps": [*_STEPS, {"text": TEXT}], "fail_first": 3},
    Situation.REFUSES: {"steps": [*_STEPS, {"text": TEXT}]},
    Situation.BREAKS_OFF: {"steps": [*_STEPS, {"text": TEXT}], "drop_after": 2},
    Situation.FALLS_SILENT: {"steps": [*_STEPS, {"text": TEXT, "delay_seconds": 3600}]},
}


class _AskedWithoutUser(ScriptedModel):
    """A script refuses illegal histories alone."""

    def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        return super().stream(replace(request, history=request.history[2:]), proof)


class TestScriptedModel(ModelProviderContract):
    @pytest.fixture
    def stage(self, tmp_path: Path) -> Stage:
        def staged(situation: Situation) -> Staged:
            script = tmp_path / "script.json"
            log = tmp_path / "calls.jsonl"
            script.write_text(json.dumps({"calls_log": log.name, **SCRIPTS[situation]}))
            kind = _AskedWithoutUser if situation is Situation.REFUSES else ScriptedModel
            return Staged(kind.from_file(script), lambda: len(log.read_text().splitlines()) if log.exists() else 0)

        return staged


ANSWERS: Mapping[Situation, Callable[[Answering], None]] = {
    Situation.ANSWERS_WITH_TEXT: streams(
        *(chunk(TEXT[start : start + 5]) for start in range(0, len(TEXT), 5)), chunk(finish="stop"), chunk(usage=(7, 3))
    ),
    Situation.ANSWERS_WITH_CALLS: streams(
        *(
            chunk(calls=[fragment(place, '{"path": ', call_id=f"call_{place}", name=name)])
            for place, (name, _) in enumerate(CALLS)
        ),
        *(
            chunk(calls=[fragment(place, json.dumps(args)[len('{"path": ') :])])
            for place, (_, args) in enumerate(CALLS)
        ),
        chunk(finish="tool_calls"),
    ),
    Situation.IS_BUSY: refuses(503),
    Situation.REFUSES: refuses(400),
    Situation.BREAKS_OFF: streams_and_drops(chunk("I re"), chunk("ad")),
    Situation.FALLS_SILENT: keeps_still,
}


class TestOpenAIChat(ModelProviderContract):
    @pytest.fixture
    def stage(self) -> Iterator[Stage]:
        with ExitStack() as servers:

            def staged(situation: Situation) -> Staged:
                server = servers.enter_context(serving(ANSWERS[situation]))
                return Staged(OpenAIChat("test-model", api_key=API_KEY, base_url=server.base_url), server.count)

            yield staged


MESSAGES: Mapping[Situation, Callable[[Answering], None]] = {
    Situation.ANSWERS_WITH_TEXT: message_events.answers(
        *message_events.text(*(TEXT[start : start + 5] for start in range(0, len(TEXT), 5)))
    ),
    Situation.ANSWERS_WITH_CALLS: message_events.answers(
        *(
            event
            for place, (name, args) in enumerate(CALLS)
            for event in message_events.use('{"path": ', json.dumps(args)[len('{"path": ') :], index=place, name=name)
        ),
        reason="tool_use",
    ),
    Situation.IS_BUSY: message_events.refuses(529, "overloaded_error"),
    Situation.REFUSES: message_events.refuses(400, "invalid_request_error"),
    Situation.BREAKS_OFF: message_events.said_and_dropped(
        message_events.start(), *message_events.text("I re", "ad")[:-1]
    ),
    Situation.FALLS_SILENT: message_events.keeps_still,
}


class TestAnthropic(ModelProviderContract):
    @pytest.fixture
    def stage(self) -> Iterator[Stage]:
        with ExitStack() as servers:

            def staged(situation: Situation) -> Staged:
                server = servers.enter_context(serving(MESSAGES[situation]))
                address = message_events.address_of(server)
                return Staged(Anthropic("test-model", api_key=API_KEY, base_url=address), server.count)

            yield staged


class _Wrong(ModelProvider):
    """Breaks the contract in one way."""

    def __init__(self, *parts: ModelPart | Exception, requests_per_call: int = 1) -> None:
        self._parts = parts
        self._requests_per_call = requests_per_call
        self.requests = 0

    def profile(self) -> ProviderProfile:
        return ProviderProfile("wrong", "wrong")

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        self.requests += self._requests_per_call
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part

    async def aclose(self) -> None:
        """Nothing is held open."""


STEP = StepFinished(blocks=(TextBlock(TEXT),), finish_reason="stop")
BUSY = ProviderRefusedBeforeOutput(RefusalKind.UNAVAILABLE, "busy")
CONTRACT = ModelProviderContract()


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (_Wrong(TextDelta(TEXT)), CONTRACT.test_deltas_come_first_and_exactly_one_finished_step_comes_last),
        (_Wrong(STEP, STEP), CONTRACT.test_deltas_come_first_and_exactly_one_finished_step_comes_last),
        (_Wrong(STEP, TextDelta("!")), CONTRACT.test_deltas_come_first_and_exactly_one_finished_step_comes_last),
        (_Wrong(TextDelta("other"), STEP), CONTRACT.test_the_deltas_together_are_the_text_of_the_step),
        (_Wrong(STEP), CONTRACT.test_parallel_calls_come_whole_and_in_order_with_the_finished_step_alone),
        (_Wrong(BUSY, requests_per_call=2), CONTRACT.test_a_busy_provider_is_refused_before_output_and_asked_once),
        (_Wrong(TextDelta("I"), BUSY), CONTRACT.test_a_busy_provider_is_refused_before_output_and_asked_once),
        (_Wrong(BUSY), CONTRACT.test_a_request_that_is_refused_for_good_says_so_and_is_made_once),
        (_Wrong(STEP), CONTRACT.test_an_answer_that_breaks_off_is_never_a_step_and_never_asked_for_again),
    ],
)
def test_the_contract_catches_an_adapter_that_breaks_it(wrong: _Wrong, check: Callable[[Stage], None]) -> None:
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        check(lambda _: Staged(wrong, lambda: wrong.requests))
