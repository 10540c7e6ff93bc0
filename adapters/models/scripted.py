"""A provider that plays a script, for demonstrations and tests that kill the program. Issue 2, point 5.

Which step it plays follows from the history alone, so a continuation goes on where its history ends; what it was asked
is appended to a log that others can count.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Self

import anyio
import anyio.lowlevel

from ...domain.replay.items import CallItem, Item, ResultItem
from ...domain.replay.legality import ModelStep, steps_of
from ...ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from ...ports.model_step import ModelPart, TextBlock, TextDelta, ThinkingBlock, ThinkingDelta
from ...ports.provider_failures import (
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    RefusalKind,
)
from .legality import why_illegal
from .script import Script, ScriptedStep, load_script

DELTAS_PER_BLOCK = 4
NOT_EXECUTED = "Not executed"
"""How every answer to a call that was not dispatched begins (domain/sentences)."""
_AFTER_THE_LAST = ScriptedStep(text="Done.")


class ScriptedModel(ModelProvider):
    """Plays one script; it checks each history as strict providers do."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._refusals_left = script.fail_first

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Play a file.

        Raises:
            ScriptError: it is not a script.
        """
        return cls(load_script(path))

    def profile(self) -> ProviderProfile:
        """Say who answers."""
        return ProviderProfile("scripted", self._script.model, None, self._script.window_tokens)

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Log the request, then play the step that follows those of the history, as the port says."""
        played = self._played(request.history)
        illegal = why_illegal(request.history)
        refused = self._refusals_left > 0 and illegal is None
        self._log(request, proof, played, illegal or ("503" if refused else None))
        if illegal is not None:
            raise ProviderFailed(f"the history is not legal: {illegal}", status_code=400)
        if refused:
            self._refusals_left -= 1
            raise ProviderRefusedBeforeOutput(
                RefusalKind.UNAVAILABLE, "the script refuses this request", status_code=503
            )
        steps, number = self._script.steps, played + 1
        scripted = steps[played] if played < len(steps) else _AFTER_THE_LAST
        await anyio.sleep(scripted.delay_seconds)
        step = scripted.finished(number, self._script.model)
        for block in step.blocks:
            if isinstance(block, ThinkingBlock | TextBlock):
                delta = ThinkingDelta if isinstance(block, ThinkingBlock) else TextDelta
                for piece in _pieces(block.text):
                    yield delta(piece)
                    await anyio.lowlevel.checkpoint()
        if self._script.drop_after == number:
            raise ProviderStreamIncomplete("the script ends this answer without a finish reason")
        yield step

    def _played(self, history: Sequence[Item]) -> int:
        steps = [step for step in steps_of(history) if isinstance(step, ModelStep)]
        if self._script.repeat_not_executed:
            steps = [step for step in steps if not _not_executed(step)]
        return len(steps)

    def _log(self, request: ModelRequest, proof: StartProof, played: int, refused: str | None) -> None:
        """Append one line, durable before anything is answered."""
        if self._script.calls_log is None:
            return
        entry: dict[str, object] = {
            "step": played if played < len(self._script.steps) else None,
            "model_steps": played,
            "pid": os.getpid(),
            "run_id": proof.run_id,
            "request_id": request.request_id,
            "calls": [item.call_id for item in request.history if isinstance(item, CallItem)],
            "results": [item.call_id for item in request.history if isinstance(item, ResultItem)],
        }
        if refused is not None:
            entry["refused"] = refused
        try:
            _append_line(self._script.calls_log, json.dumps(entry))
        except OSError as error:
            raise ProviderFailed(
                f"the calls_log {self._script.calls_log} cannot be written: {error.strerror}"
            ) from error

    async def aclose(self) -> None:
        """Nothing is held open."""


def _not_executed(step: ModelStep) -> bool:
    said = [result.result for result in step.results if result.is_error]
    refused = [text for text in said if isinstance(text, str) and text.startswith(NOT_EXECUTED)]
    return bool(refused) and len(refused) == len(step.results)


def _append_line(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line.encode() + b"\n")  # one write: lines of several processes never mix
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pieces(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // DELTAS_PER_BLOCK))
    return (text[start : start + size] for start in range(0, len(text), size))
