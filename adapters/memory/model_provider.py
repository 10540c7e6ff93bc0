"""A model whose answers a test plans, and that remembers what it was asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import anyio
import anyio.lowlevel

from ...domain import canonical
from ...domain.events.event import Json
from ...domain.identifiers import RunId
from ...domain.replay.legality import check_provider_legality
from ...ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from ...ports.model_step import (
    Block,
    CallBlock,
    ModelPart,
    StepFinished,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
)
from ...ports.provider_failures import ProviderError, ProviderFailed


@dataclass(frozen=True, slots=True)
class Stall:
    """Says `text`, and then nothing for ever: the request can only be cancelled."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class BreaksOff:
    """Says `text`, and then fails."""

    text: str
    failure: ProviderError


Planned: TypeAlias = StepFinished | ProviderError | Stall | BreaksOff


class Asked(NamedTuple):
    """One request, and the run that it was for."""

    request: ModelRequest
    run_id: RunId


class PlannedModel(ModelProvider):
    """Gives planned answers, one per request, in order; a request beyond the plan fails.

    Attributes:
        asked: every request so far, in order.
    """

    def __init__(self, steps: Sequence[Planned], profile: ProviderProfile | None = None) -> None:
        self._steps = list(steps)
        self._profile = profile or ProviderProfile("planned", "planned")
        self.asked: list[Asked] = []

    def profile(self) -> ProviderProfile:
        """Say who answers."""
        return self._profile

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Give the next planned answer, as the port says."""
        self.asked.append(Asked(request, proof.run_id))
        await anyio.lowlevel.checkpoint()
        illegal = check_provider_legality(request.history)
        if illegal is not None:
            raise ProviderFailed(f"the history is not legal: {illegal}", status_code=400)
        place = len(self.asked) - 1
        if place >= len(self._steps):
            raise ProviderFailed(f"the plan has {len(self._steps)} answers; this is request {place + 1}")
        planned = self._steps[place]
        if isinstance(planned, ProviderError):
            raise planned
        if isinstance(planned, StepFinished):
            for block in planned.blocks:
                if isinstance(block, TextBlock):
                    yield TextDelta(block.text)
                elif isinstance(block, ThinkingBlock):
                    yield ThinkingDelta(block.text)
            yield planned
            return
        if planned.text:
            yield TextDelta(planned.text)
        if isinstance(planned, BreaksOff):
            raise planned.failure
        await anyio.sleep_forever()

    async def aclose(self) -> None:
        """Nothing is held open."""


def says(text: str, finish_reason: str = "stop") -> StepFinished:
    """Plan a step of text alone."""
    return StepFinished(blocks=(TextBlock(text),), finish_reason=finish_reason, model="planned")


def calls(*wanted: tuple[str, Json] | CallBlock, text: str = "") -> StepFinished:
    """Plan a step of tool calls, in order.

    Args:
        wanted: tool name and arguments (the provider's id is then `call_1`, …, used again in every step), or a block.
        text: what it says before them.
    """
    blocks: list[Block] = [TextBlock(text)] if text else []
    for place, call in enumerate(wanted, start=1):
        if isinstance(call, CallBlock):
            blocks.append(call)
        else:
            tool_name, args = call
            blocks.append(CallBlock(f"call_{place}", tool_name, canonical.encode(args).decode()))
    return StepFinished(blocks=tuple(blocks), finish_reason="tool_calls", model="planned")
