"""The agent loop: one model step at a time, its calls, and the terminal event, whatever happens. SPEC section 7, 8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from ..domain.errors import WriteRefused
from ..domain.events.run import RunStatus
from ..domain.events.tool import ToolCalled
from ..domain.own_copies import own_items
from ..domain.reasons import FailureClass, WriteRefusal
from ..domain.replay.items import Item
from ..ports.failpoints import Failpoint, Failpoints
from ..ports.ids import Ids
from ..ports.model_provider import ModelRequest, OfferedTool
from ..ports.provider_failures import ProviderError, ProviderFailed
from ..ports.tool_catalog import BoundCall
from .budget import Budget, BudgetSpent
from .call_order import predecessors
from .intake import Step, step_of
from .model_steps import ModelSteps
from .preflight import Refused
from .run_checkpoints import NoCheckpoints, without_writes
from .run_ending import RunEnding, may_be_ended
from .run_history import RunHistory
from .run_recorder import RunRecorder
from .stopping import Stopping
from .tool_boundary import ToolBoundary, ToolNotOver

STEPS_MAX = 500
EVENTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended, with the model's last words; `detail` says what went wrong, for people."""

    status: RunStatus
    failure: FailureClass | None = None
    text: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What every request of a run has in common; `history` is what stands before the run's own items."""

    system: str
    tools: tuple[OfferedTool, ...]
    history: tuple[Item, ...]


class AgentLoop:
    """Drives one run to its terminal event.

    Args:
        note: told when a call is made and when it is answered; never raises.
        steps_max: model steps of this run, 1 or more.
        events_max: when the run has so many events, no further step is asked for.
        budget: what the turn may use.
        checkpoints: binds the run to the content of its workspace.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        models: ModelSteps,
        tools: ToolBoundary,
        ending: RunEnding,
        stopping: Stopping,
        ids: Ids,
        failpoints: Failpoints,
        prompt: Prompt,
        note: Callable[[str, str], None],
        *,
        steps_max: int = STEPS_MAX,
        events_max: int = EVENTS_MAX,
        budget: Budget,
        checkpoints: NoCheckpoints,
    ) -> None:
        self._recorder = recorder
        self._models = models
        self._tools = tools
        self._ending = ending
        self._stopping = stopping
        self._ids = ids
        self._failpoints = failpoints
        self._prompt = prompt
        self._note = note
        self._steps_max = steps_max
        self._events_max = events_max
        self._budget = budget
        self._checkpoints = checkpoints
        self._history = RunHistory(recorder, prompt.history)
        self._text = ""

    async def run(self) -> RunOutcome:
        """Go on until the model has nothing more to call, or the run must end.

        Raises:
            StoreError, WriteRefused: the run could not be recorded any further; its record stands as it is, and repair
                will close it.
            Exception: a defect; the run has its terminal event.
        """
        try:
            failure = await self._steps()
        except ProviderError as error:
            return await self._failed(error.failure_class, error)
        except BudgetSpent as error:
            return await self._failed(FailureClass.STEP_LIMIT, error)
        except ToolNotOver as error:
            return await self._failed(FailureClass.TOOL_NOT_OVER, error)
        except Exception as error:
            if may_be_ended(error):
                await self._failed(FailureClass.APP_RESTARTED, error)
            raise
        if failure is not None and not self._stopping.is_set():
            return self._outcome(*await self._ending.failed(failure))
        return self._outcome(*await self._ending.done())

    async def _failed(self, failure: FailureClass, error: Exception) -> RunOutcome:
        if self._stopping.is_set() and failure is not FailureClass.TOOL_NOT_OVER:
            return self._outcome(*await self._ending.cancelled())
        return self._outcome(*await self._ending.failed(failure, error), str(error))

    def _outcome(self, status: RunStatus, failure: FailureClass | None, detail: str = "") -> RunOutcome:
        return RunOutcome(status, failure, self._text, detail)

    async def _steps(self) -> FailureClass | None:
        await self._checkpoints.at_start()
        for _ in range(self._steps_max):
            if self._stopping.is_set():
                return None
            if len(self._recorder.events) >= self._events_max:
                return FailureClass.STEP_LIMIT
            self._budget.check()
            step = await self._step()
            if step is None or not step.calls or self._stopping.is_set():
                return None
            await self._calls(step)
            await self._checkpoints.when_settled()
            self._failpoints.hit(Failpoint.RESULT_DELIVERED)
        return FailureClass.STEP_LIMIT

    async def _step(self) -> Step | None:
        """Ask for one step and record it; None when the run was stopped while the model was waited for."""
        request = ModelRequest(
            request_id=self._ids.fresh(str),
            system_prompt=self._prompt.system,
            history=own_items(self._history.items()),
            tools=self._prompt.tools,
        )
        scope = self._stopping.at_once()
        try:
            with scope:
                finished = await self._models.next(request)
        finally:
            self._stopping.done(scope)
        if scope.cancelled_caught:
            return None
        step = step_of(finished, self._recorder, await self._recorder.run(), self._ids)
        try:
            await self._recorder.record_step(step.facts)
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.TRANSITION_SHAPE_CONFLICT:
                raise
            raise ProviderFailed(f"the answer cannot be recorded: {refused.detail}") from refused
        self._text = step.text or self._text
        return step

    async def _calls(self, step: Step) -> None:
        """Answer all calls of a step; one that fails does not stop its siblings. What was not recorded is raised."""
        calls = step.calls
        bound = [self._tools.bind(call, step.unreadable.get(call.call_id)) for call in calls]
        if (detail := await self._checkpoints.before_step(bound)) is not None:
            bound = without_writes(bound, detail)
        waits = predecessors([None if isinstance(one, Refused) else one for one in bound])
        answered = [anyio.Event() for _ in calls]
        errors: list[Exception] = []

        async def one(position: int) -> None:
            try:
                for earlier in waits[position]:
                    await answered[earlier].wait()
                await self._call(calls[position], bound[position])
            except Exception as error:  # noqa: BLE001 (raised again below, when every sibling has its answer)
                errors.append(error)
            finally:
                answered[position].set()

        async with anyio.create_task_group() as group:
            for position in range(len(calls)):
                group.start_soon(one, position)
        if errors:
            raise next((e for e in errors if not isinstance(e, ToolNotOver)), errors[0])

    async def _call(self, call: ToolCalled, bound: BoundCall | Refused) -> None:
        self._note(call.tool_name, "called")
        if isinstance(bound, Refused):
            await self._tools.refuse(call, bound)
        else:
            await self._tools.call(call, bound)
        self._note(call.tool_name, "answered")
