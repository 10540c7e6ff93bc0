"""The agent loop: one model step at a time, its calls, and the terminal event, whatever happens. SPEC sections 7 and 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from ..domain.errors import StoreError, WriteRefused
from ..domain.events.model import ModelText
from ..domain.events.outside import BackgroundSettled
from ..domain.events.run import CancelRequested, RunError, RunStatus
from ..domain.events.tool import ToolCalled
from ..domain.reasons import FailureClass
from ..domain.replay.blocks import SegmentBlocks
from ..domain.replay.items import Item
from ..ports.background_work import BackgroundWork, JobHandle, JobSettled
from ..ports.failpoints import Failpoint, Failpoints
from ..ports.ids import Ids
from ..ports.model_provider import ModelRequest, OfferedTool
from ..ports.provider_failures import ProviderError
from .call_order import predecessors
from .intake import facts_of_step
from .model_steps import ModelSteps
from .over import attached_jobs
from .preflight import Refused
from .record_settled_jobs import handle_of
from .run_recorder import RunRecorder
from .stopping import Stopping
from .tool_boundary import ToolBoundary, ToolNotOver

STEPS_MAX = 500
JOB_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended, with the model's last words."""

    status: RunStatus
    failure: FailureClass | None = None
    text: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What every request of a run has in common."""

    system: str
    tools: tuple[OfferedTool, ...]
    history: tuple[Item, ...]


class AgentLoop:
    """Drives one run to its terminal event.

    Args:
        prompt: system prompt, tools, and the history before this run.
        note: told when a step was recorded or a call answered, for progress on a screen.
        steps_max: model steps of this run, 1 or more.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        models: ModelSteps,
        tools: ToolBoundary,
        jobs: BackgroundWork,
        stopping: Stopping,
        ids: Ids,
        failpoints: Failpoints,
        prompt: Prompt,
        note: Callable[[str, str], None],
        *,
        steps_max: int = STEPS_MAX,
    ) -> None:
        self._recorder = recorder
        self._models = models
        self._tools = tools
        self._jobs = jobs
        self._stopping = stopping
        self._ids = ids
        self._failpoints = failpoints
        self._prompt = prompt
        self._note = note
        self._steps_max = steps_max
        self._blocks = SegmentBlocks()
        self._fed = 0
        self._text = ""

    async def run(self) -> RunOutcome:
        """Go on until the model has nothing more to call, or the run must end.

        Raises:
            StoreError, WriteRefused: the run could not be recorded any further; its record stands as it is, and repair will close it.
        """
        try:
            failure = await self._steps()
        except ProviderError as error:
            return await self._failed(error.failure_class, error)
        except ToolNotOver as error:
            return await self._failed(FailureClass.TOOL_NOT_OVER, error)
        except (StoreError, WriteRefused):
            raise
        except Exception as error:  # a defect of ours or of an adapter: the run still reaches its terminal event
            return await self._failed(FailureClass.PROVIDER_FAILED, error)
        if self._stopping.is_set():
            return await self._cancelled()
        if failure is not None:
            await self._settle_jobs()
            await self._recorder.end(RunStatus.FAILED, failure)
            return RunOutcome(RunStatus.FAILED, failure, self._text)
        await self._settle_jobs()
        await self._recorder.end(RunStatus.COMPLETED)
        return RunOutcome(RunStatus.COMPLETED, None, self._text)

    async def _steps(self) -> FailureClass | None:
        for _ in range(self._steps_max):
            calls = await self._step()
            if not calls or self._stopping.is_set():
                return None
            await self._calls(calls)
            if self._stopping.is_set():
                return None
            self._failpoints.hit(Failpoint.RESULT_DELIVERED)
        return FailureClass.STEP_LIMIT

    async def _step(self) -> Sequence[ToolCalled]:
        request = ModelRequest(
            request_id=self._ids.fresh(str),
            system_prompt=self._prompt.system,
            history=(*self._prompt.history, *self._own_items()),
            tools=self._prompt.tools,
        )
        scope = self._stopping.at_once()
        try:
            with scope:
                finished = await self._models.next(request)
        finally:
            self._stopping.done(scope)
        if scope.cancelled_caught:
            return ()
        facts = facts_of_step(finished, self._recorder, self._ids)
        await self._recorder.record_step(facts)
        self._text = "".join(fact.text for fact in facts if isinstance(fact, ModelText)) or self._text
        return [fact for fact in facts if isinstance(fact, ToolCalled)]

    def _own_items(self) -> tuple[Item, ...]:
        events = self._recorder.events
        self._blocks.feed(events[self._fed :])
        self._fed = len(events)
        return self._blocks.items()

    async def _calls(self, calls: Sequence[ToolCalled]) -> None:
        """Answer all calls of a step; one that fails does not stop its siblings, and what could not be recorded is raised."""
        bound = [self._tools.bind(call) for call in calls]
        waits = predecessors([None if isinstance(one, Refused) else one for one in bound])
        answered = [anyio.Event() for _ in calls]
        errors: list[Exception] = []

        async def one(position: int) -> None:
            try:
                for earlier in waits[position]:
                    await answered[earlier].wait()
                if errors:
                    return  # the record of the run is in doubt: nothing more is dispatched
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

    async def _call(self, call: ToolCalled, bound: object) -> None:
        self._note(call.tool_name, "called")
        if isinstance(bound, Refused):
            await self._tools.refuse(call, bound)
        else:
            await self._tools.call(call, bound)  # type: ignore[arg-type]
        self._note(call.tool_name, "answered")

    async def _failed(self, failure: FailureClass, error: Exception) -> RunOutcome:
        if self._stopping.is_set() and failure is not FailureClass.TOOL_NOT_OVER:
            return await self._cancelled()
        fact = RunError(**self._recorder.spine(), error_class=type(error).__name__, code=failure)
        await self._recorder.append(fact)
        await self._settle_jobs()
        await self._recorder.end(RunStatus.FAILED, failure)
        return RunOutcome(RunStatus.FAILED, failure, self._text, str(error))

    async def _cancelled(self) -> RunOutcome:
        by = self._stopping.by or "the host"
        if self._recorder.run().cancel_requested is None:
            await self._recorder.append(CancelRequested(**self._recorder.spine(), by=by))
        await self._settle_jobs()
        await self._recorder.end(RunStatus.CANCELLED, stopped_by=by)
        return RunOutcome(RunStatus.CANCELLED, None, self._text)

    async def _settle_jobs(self) -> None:
        """Wait, bounded, for work that tools left running and that is not detached; end what is still there; record its end."""
        for job in attached_jobs(self._recorder.run()):
            handle = handle_of(job)
            with anyio.CancelScope(shield=True):
                seen = await self._settled(handle)
            if isinstance(seen, JobSettled):
                await self._recorder.append(
                    BackgroundSettled(
                        **self._recorder.spine(),
                        handle_id=job.handle_id,
                        status=seen.status,
                        exit_code=seen.exit_code,
                        signal=seen.signal,
                    )
                )

    async def _settled(self, handle: JobHandle) -> object:
        waited = 0.0 if self._stopping.is_set() else JOB_WAIT_SECONDS
        with anyio.move_on_after(waited):
            while True:
                seen = (await anyio.to_thread.run_sync(self._jobs.observe, [handle]))[0]
                if isinstance(seen, JobSettled):
                    return seen
                await anyio.sleep(0.1)
        return await anyio.to_thread.run_sync(self._jobs.end, handle, JOB_WAIT_SECONDS)
