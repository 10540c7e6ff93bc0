"""Asks the provider, under a start proof: one answered request per step, refusals before any output repeated within bounds.

SPEC section 14: the client's own retries are off, and each refused request is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from ..domain.events.model import ProviderAttempted
from ..ports.model_provider import ModelProvider, ModelRequest
from ..ports.model_step import StepFinished, TextDelta, ThinkingDelta
from ..ports.provider_failures import ProviderRefusedBeforeOutput, ProviderStreamIncomplete
from .run_recorder import RunRecorder
from .start_proof import StartProof


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request that was refused before any output is made, and how long is waited in between."""

    attempts_max: int = 4
    first_wait_seconds: float = 0.5
    wait_seconds_max: float = 30.0


class ModelSteps:
    """The provider for one run; spending the start proof is the only way to get one.

    Args:
        proof: given by the commit that began the run; used up here.
        show: takes partial text and thinking as they come; never recorded (R13).
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
                await self._recorder.append(
                    ProviderAttempted(
                        **self._recorder.spine(),
                        attempt=attempt,
                        failure=refused.kind.value,
                        status_code=refused.status_code,
                    )
                )
                if attempt >= self._retries.attempts_max:
                    raise
                await anyio.sleep(self._wait(attempt, refused.retry_after_seconds))
                attempt += 1

    async def _once(self, request: ModelRequest) -> StepFinished:
        finished: StepFinished | None = None
        parts = self._provider.stream(request, self._proof)
        try:
            async for part in parts:
                if isinstance(part, StepFinished):
                    finished = part
                else:
                    self._show(part)
        finally:
            with anyio.CancelScope(shield=True):
                await parts.aclose()
        if finished is None:
            raise ProviderStreamIncomplete("the answer ended without a finish reason")
        return finished

    def _wait(self, attempt: int, asked_seconds: float | None) -> float:
        own = self._retries.first_wait_seconds * float(2 ** (attempt - 1))
        return min(max(own, asked_seconds or 0.0), self._retries.wait_seconds_max)
