"""Puts the parts of one run together and drives it to its end. SPEC sections 7, 8 and 14."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..ports.background_work import BackgroundWork
from ..ports.failpoints import Failpoints
from ..ports.ids import Ids
from ..ports.model_step import TextDelta, ThinkingDelta
from ..ports.supervisor import Supervisor
from .agent import Agent
from .agent_loop import STEPS_MAX, AgentLoop, Prompt, RunOutcome
from .async_ledger import AsyncLedger
from .implementations import Implementations
from .model_steps import ModelSteps, RetryPolicy
from .over import LiveOperations
from .preflight import LoopLimits, Preflight
from .run_recorder import RunRecorder
from .spines import Spines
from .start_turn import Begun
from .stopping import Stopping
from .tool_boundary import ToolBoundary


def _ignore(*_: object) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Who watches a run: partial output, what happens to calls, and progress lines of tools. None of it is durable (R13)."""

    partial: Callable[[TextDelta | ThinkingDelta], None] = _ignore
    note: Callable[[str, str], None] = _ignore
    progress: Callable[[str, str], None] = _ignore


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Bounds on one run."""

    steps_max: int = STEPS_MAX
    loops: LoopLimits = field(default_factory=LoopLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)


class RunAgent:
    """Drives runs that have their first commit."""

    def __init__(
        self,
        ledger: AsyncLedger,
        spines: Spines,
        ids: Ids,
        failpoints: Failpoints,
        supervisor: Supervisor,
        jobs: BackgroundWork,
        live: LiveOperations,
        limits: RunLimits = RunLimits(),
    ) -> None:
        self._ledger = ledger
        self._spines = spines
        self._ids = ids
        self._failpoints = failpoints
        self._supervisor = supervisor
        self._jobs = jobs
        self._live = live
        self._limits = limits

    def recorder(self, begun: Begun) -> RunRecorder:
        """The writing side of a run that has its first commit."""
        return RunRecorder(self._ledger, self._spines, self._failpoints, begun.identity, begun.owned, begun.receipt)

    async def __call__(
        self, begun: Begun, recorder: RunRecorder, agent: Agent, screen: Screen, stopping: Stopping
    ) -> RunOutcome:
        """Drive a run to its terminal event.

        Raises:
            StoreError, WriteRefused: the run could not be recorded any further; repair will close it.
        """
        models = ModelSteps(agent.provider, begun.proof, recorder, screen.partial, self._limits.retries)
        preflight = Preflight(
            recorder, agent.catalog, agent.gate, self._ids, stopping, begun.grants, self._limits.loops
        )
        implementations = Implementations(stopping, on_late_end=lambda context: self._live.ended(context.operation_id))
        tools = ToolBoundary(
            recorder,
            preflight,
            implementations,
            self._supervisor,
            self._live,
            stopping,
            self._ids,
            self._failpoints,
            agent.workspace,
            screen.progress,
        )
        prompt = Prompt(agent.system_prompt, agent.offered(), begun.history)
        loop = AgentLoop(
            recorder,
            models,
            tools,
            self._jobs,
            stopping,
            self._ids,
            self._failpoints,
            prompt,
            screen.note,
            steps_max=self._limits.steps_max,
        )
        return await loop.run()
