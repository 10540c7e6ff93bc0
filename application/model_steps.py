"""Asks the provider, under a start proof: one answered request per step, refusals before any output repeated in bounds.

SPEC section 14: the client's own retries are off, and each refused request is recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from ..domain.events.model import ProviderAttempted
from ..ports.model_provider import ModelProvider, ModelRequest
from ..ports.model_step import StepFinished, TextDelta, ThinkingDelta
from ..ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
)
from .run_recorder import RunRecorder
from .start_proof import StartProof

CLOSE_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request that was refused before any output is made, and how long is waited in between.

    Attributes:
        attempts_max: requests for one step, 1 or more.
        first_wait_seconds: doubled each time; the provider may ask for longer.
        wait_seconds_max: bound on one wait; a provider that asks for longer is not asked again.
        sleep: waits so many seconds.
    """

    attempts_max: int = 4
    first_wait_seconds: float = 0.5
    wait_seconds_max: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


class ModelSteps:
    """The provider for one run; spending the start proof is the only way to get one.

    Args:
        proof: given by the commit that began the run; used up here.
        show: takes partial text and thinking as they come; never recorded (R13), never raises.

    Raises:
        ProofUsed: the proof was spent before.
    """

    def __init__(
        self,
        provider: ModelProvider,
        proof: StartProof,
        recorder: RunRecorder,
        show: Callable[[TextDelta | ThinkingDelta], None],
        retries: RetryPolicy = RetryPolicy(),
    ) -> None:
        proof.use()
        self._proof = proof
        self._provider = provider
        self._recorder = recorder
        self._show = show
        self._retries = retries

    async def next(self, request: ModelRequest) -> StepFinished:
        """Ask for one step.

        Raises:
            ProviderError: no step came; the request is not repeated.
        """
        attempt = 1
        while True:
            try:
                return await self._once(request)
            except ProviderRefusedBeforeOutput as refused:
                await self._record(attempt, refused)
                wait_seconds = self._wait_seconds(attempt, refused.retry_after_seconds)
                if attempt >= self._retries.attempts_max or wait_seconds > self._retries.wait_seconds_max:
                    raise
                await self._retries.sleep(wait_seconds)
                attempt += 1

    async def _record(self, attempt: int, refused: ProviderRefusedBeforeOutput) -> None:
        await self._recorder.append(
            ProviderAttempted(
                **self._recorder.spine(),
                attempt=attempt,
                failure=refused.kind.value,
                status_code=refused.status_code,
            )
        )

    async def _once(self, request: ModelRequest) -> StepFinished:
        parts = self._provider.stream(request, self._proof)
        begun = False
        try:
            async for part in parts:
                if isinstance(part, StepFinished):
                    return part
                begun = True
                self._show(part)
        except ProviderRefusedBeforeOutput as refused:
            if begun:  # asking again could be answered twice
                raise ProviderStreamIncomplete(refused.detail, status_code=refused.status_code) from refused
            raise
        except ProviderError:
            raise
        except Exception as error:
            raise ProviderFailed(f"the provider's adapter failed with {type(error).__name__}") from error
        finally:
            # What was given stands; closing is politeness, also towards a provider that does not answer any more.
            with anyio.move_on_after(CLOSE_SECONDS_MAX, shield=True), contextlib.suppress(Exception):
                await parts.aclose()
        raise ProviderStreamIncomplete("the answer ended without a finish reason")

    def _wait_seconds(self, attempt: int, asked_seconds: float | None) -> float:
        own = min(self._retries.first_wait_seconds * float(2 ** (attempt - 1)), self._retries.wait_seconds_max)
        return max(own, asked_seconds or 0.0)
