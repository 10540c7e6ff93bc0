"""Puts the parts of one run together and drives it to its end. SPEC sections 7, 8 and 14."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ports.background_work import BackgroundWork
from ..ports.checkpoints import NotKept
from ..ports.failpoints import Failpoints
from ..ports.ids import Ids
from ..ports.model_step import TextDelta, ThinkingDelta
from ..ports.supervisor import Supervisor
from ..ports.tool_catalog import Workspace
from .after_dispatch import AfterDispatch
from .agent import Agent
from .agent_loop import EVENTS_MAX, STEPS_MAX, AgentLoop, Prompt, RunOutcome
from .asking import Asking
from .async_ledger import AsyncLedger
from .before_dispatch import BeforeDispatch
from .budget import Budget
from .capture_content import NOWHERE, CaptureContent
from .implementations import FORMAT_SECONDS_MAX, Implementations
from .late_outcome import LateOutcomes
from .live_operations import LiveOperations
from .live_runs import LiveRun
from .model_steps import ModelSteps, RetryPolicy
from .open_questions import OpenQuestions
from .places import Places
from .preflight import LoopLimits, Preflight
from .run_checkpoints import UNBOUND, NoCheckpoints, RunCheckpoints, WorkspaceBound
from .run_ending import JOB_WAIT_SECONDS, RunEnding
from .run_recorder import RunRecorder
from .spines import Spines
from .start_turn import Begun
from .stopping import Stopping
from .tool_boundary import ToolBoundary

if TYPE_CHECKING:  # most runs are driven by our own loop
    from .recorded_run import RecordingParts


def _ignore(*_: object) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Who watches a run: partial output, what happens to calls, and progress of tools. None of it is durable (R13).

    Watching is best effort: what a callback raises is noticed by nobody and changes nothing (R15). Progress comes from
    any thread.
    """

    partial: Callable[[TextDelta | ThinkingDelta], None] = _ignore
    note: Callable[[str, str], None] = _ignore
    progress: Callable[[str, str], None] = _ignore
    not_bound: Callable[[NotKept], None] = _ignore

    def show(self, part: TextDelta | ThinkingDelta) -> None:
        """More of an answer that is not finished."""
        with contextlib.suppress(Exception):
            self.partial(part)

    def tell(self, tool_name: str, what: str) -> None:
        """A call was made, or answered."""
        with contextlib.suppress(Exception):
            self.note(tool_name, what)

    def say_not_bound(self, why: NotKept) -> None:
        """The turn is bound to no content, because that was not possible."""
        with contextlib.suppress(Exception):
            self.not_bound(why)

    def report(self, tool_name: str, line: str) -> None:
        """Progress of a tool."""
        with contextlib.suppress(Exception):
            self.progress(tool_name, line)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Bounds on one run."""

    steps_max: int = STEPS_MAX
    events_max: int = EVENTS_MAX
    loops: LoopLimits = field(default_factory=LoopLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    format_seconds_max: float = FORMAT_SECONDS_MAX
    job_wait_seconds: float = JOB_WAIT_SECONDS


class RunAgent:
    """Drives runs that have their first commit.

    Args:
        places: how many implementations may run at once, shared by all runs of a runtime.
        capture: names the checkpoints of runs that are bound to the content of their workspace.
    """

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
        places: Places | None = None,
        capture: CaptureContent = NOWHERE,
    ) -> None:
        self._ledger = ledger
        self._spines = spines
        self._ids = ids
        self._failpoints = failpoints
        self._supervisor = supervisor
        self._jobs = jobs
        self._live = live
        self._limits = limits
        self._places = places or Places()
        self._capture = capture

    def recorder(self, begun: Begun) -> RunRecorder:
        """Make the writing side of a run that has its first commit."""
        return RunRecorder(self._ledger, self._spines, self._failpoints, begun.identity, begun.owned, begun.receipt)

    async def __call__(
        self,
        begun: Begun,
        recorder: RunRecorder,
        agent: Agent,
        screen: Screen,
        stopping: Stopping,
        questions: OpenQuestions,
    ) -> RunOutcome:
        """Drive a run to its terminal event.

        Args:
            questions: where a person at another terminal finds what waits for permission.

        Raises:
            ProofUsed: the run was driven before; the provider was not called.
            StoreError, WriteRefused: the run could not be recorded any further; repair will close it.
        """
        limits = self._limits
        checkpoints = self._checkpoints(begun, recorder, agent, screen)
        ours = Implementations(stopping, format_seconds_max=limits.format_seconds_max)
        (boundary,) = self._boundaries(begun, recorder, agent, screen, stopping, questions, ours)
        loop = AgentLoop(
            recorder,
            ModelSteps(agent.provider, begun.proof, recorder, screen.show, limits.retries),
            boundary,
            self._ending(recorder, stopping, checkpoints),
            stopping,
            self._ids,
            self._failpoints,
            Prompt(agent.system_prompt, agent.offered(), begun.history),
            screen.tell,
            steps_max=limits.steps_max,
            events_max=limits.events_max,
            budget=Budget(recorder, begun.budgets, begun.used),
            checkpoints=checkpoints,
        )
        return await loop.run()

    def _checkpoints(self, begun: Begun, recorder: RunRecorder, agent: Agent, screen: Screen) -> NoCheckpoints:
        content, identity = begun.content, agent.workspace_identity
        if content is None or agent.checkpoints is None or identity is None:
            return UNBOUND
        return RunCheckpoints(
            recorder,
            agent.checkpoints,
            self._failpoints,
            WorkspaceBound(str(agent.workspace), identity, content.epoch),
            self._capture.new_key,
            content.kept,
            screen.tell,
        )

    def recording(self, begun: Begun, live: LiveRun, agent: Agent) -> RecordingParts:
        """What a run is recorded with that somebody else drives: whoever that is asks the provider from now on.

        Raises:
            ProofUsed: the run was driven before.
        """
        from .open_call import HandedOver
        from .recorded_run import RecordingParts
        from .run_history import RunHistory

        begun.proof.use()
        screen = Screen()  # whoever drives it sees for himself what happens
        recorder, stopping = live.recorder, live.stopping
        checkpoints = self._checkpoints(begun, recorder, agent, screen)
        blocks, functions = self._boundaries(
            begun,
            recorder,
            agent,
            screen,
            stopping,
            live.questions,
            HandedOver(stopping, format_seconds_max=self._limits.format_seconds_max),
            Implementations(stopping, format_seconds_max=self._limits.format_seconds_max),
        )
        return RecordingParts(
            recorder,
            RunHistory(recorder, begun.history),
            blocks,
            functions,
            self._ending(recorder, stopping, checkpoints),
            stopping,
            self._ids,
            Budget(recorder, begun.budgets, begun.used),
            checkpoints,
            begun.not_bound,
        )

    def _ending(self, recorder: RunRecorder, stopping: Stopping, checkpoints: NoCheckpoints) -> RunEnding:
        wait_seconds = self._limits.job_wait_seconds
        return RunEnding(recorder, self._jobs, self._supervisor, stopping, checkpoints, job_wait_seconds=wait_seconds)

    def _boundaries(
        self,
        begun: Begun,
        recorder: RunRecorder,
        agent: Agent,
        screen: Screen,
        stopping: Stopping,
        questions: OpenQuestions,
        *implementations: Implementations,
    ) -> list[ToolBoundary]:
        """One boundary for each way to carry calls out; what is admitted, and how often, is counted together."""
        asking = Asking(recorder, agent.gate, self._ids, stopping, questions)
        preflight = Preflight(recorder, agent.catalog, asking, begun.grants, self._limits.loops)
        workspace = Workspace(agent.workspace, agent.workspace_identity)
        before = BeforeDispatch(recorder, self._supervisor, self._ids, stopping, workspace)
        late_outcomes = LateOutcomes(self._ledger.ledger, self._spines, self._live)
        return [
            ToolBoundary(
                recorder,
                preflight,
                before,
                AfterDispatch(
                    recorder,
                    carrying_out,
                    self._supervisor,
                    late_outcomes,
                    stopping,
                    self._failpoints,
                    agent.workspace,
                    screen.report,
                ),
                self._places,
                self._live,
                stopping,
            )
            for carrying_out in implementations
        ]
