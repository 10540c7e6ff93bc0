"""One open run that somebody else's loop drives: what it tells is recorded by the rules of our own loop. SPEC 17.

The loop asks its model and runs its tools; this end keeps the order: a step is recorded before its calls are carried
out, T1 before an effect, T2 before the model is shown it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from anyio.abc import TaskGroup

from ..domain.errors import SafepointError
from ..domain.events.model import UserMessage
from ..domain.events.run import RunStatus
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import ExecutionIdentity
from ..domain.operation.state import Phase, unanswered_of
from ..domain.reasons import FailureClass, ResponseCode
from ..domain.replay.items import Item
from ..domain.tool_results import sayable
from ..ports.checkpoints import NotKept
from ..ports.ids import Ids
from ..ports.model_step import StepFinished
from ..ports.provider_failures import ProviderError
from ..ports.tool_catalog import BoundCall
from ..ports.tool_functions import misfit
from .agent_loop import RunOutcome
from .budget import Budget, BudgetSpent
from .call_answers import Answer, RunStopped, answer_of
from .intake import Step, step_of
from .loop_calls import LoopCalls
from .loop_functions import check_function
from .open_call import OpenCall
from .own_task import in_a_task_of_its_own
from .preflight import Refused, mismatch
from .run_checkpoints import UNBOUND, NoCheckpoints, without_writes
from .run_ending import RunEnding, may_be_ended
from .run_history import RunHistory
from .run_recorder import RunRecorder
from .stopping import Stopping
from .tool_boundary import ToolBoundary
from .unanswered_calls import CallsUnanswered, NoStepRecorded
from .user_text import check_said

_UNANSWERED: Final = frozenset({Phase.CALLED, Phase.DISPATCHED})
Does: TypeAlias = Callable[..., Any]
"""Carries a call out: gets its arguments by name, and returns or awaits the result."""


@dataclass(frozen=True, slots=True)
class RecordingParts:
    """What the record of one run is kept with.

    Attributes:
        blocks: carries out calls whose effect happens in a block of the loop's own code.
        functions: carries out calls by functions.
        budget: what the turn may use.
        checkpoints: binds the run to the content of its workspace, where its lineage is.
        not_bound: why a turn that was to be bound where possible is not.
    """

    recorder: RunRecorder
    history: RunHistory
    blocks: ToolBoundary
    functions: ToolBoundary
    ending: RunEnding
    stopping: Stopping
    ids: Ids
    budget: Budget
    checkpoints: NoCheckpoints
    not_bound: NotKept | None = None


class RecordedRun:
    """What a loop tells of one run; made by `RecordRun`. Belongs to the event loop on which it was begun.

    Args:
        tasks: where calls wait for their blocks; it outlives the run.

    Attributes:
        outcome: how the run ended; None while it is open, and where repair is to close it.
    """

    def __init__(self, parts: RecordingParts, tasks: TaskGroup) -> None:
        self.outcome: RunOutcome | None = None
        self._parts = parts
        self._recorder = parts.recorder
        self._stopping = parts.stopping
        self._tasks = tasks
        self._calls = LoopCalls(parts.recorder)
        self._torn = False
        self._answered_by_model = False
        self._text = ""

    @property
    def identity(self) -> ExecutionIdentity:
        """The session, run, turn and invocation."""
        return self._recorder.identity

    @property
    def not_bound(self) -> NotKept | None:
        """Why a turn that was to be bound to the content of its workspace is not; None in every other. ADR 0081."""
        return self._parts.not_bound

    @property
    def stopped_by(self) -> str | None:
        """Who stopped the run, None while it may go on."""
        return self._stopping.by if self._stopping.is_set() else None

    def history(self) -> tuple[Item, ...]:
        """What the model is to be shown next, in no provider's format; calls without an answer are not in it.

        The items are the run's own: whoever hands them on makes a copy, or a provider's messages.
        """
        return self._parts.history.items()

    def check(self) -> None:
        """Do nothing while another model step may be asked for.

        Raises:
            RunStopped: a person stopped the run, or an operation of it was left without an outcome.
            CallsUnanswered: the step before asked for calls that have no answer.
            BudgetSpent: one of the turn's budgets is used up.
        """
        self._check_open()
        self._parts.budget.check()

    def _check_open(self) -> None:
        if self._torn or self.stopped_by is not None:
            raise RunStopped(self.identity.run_id, self.stopped_by)
        if unanswered := self._calls.unanswered():
            raise CallsUnanswered(self.identity.run_id, unanswered)

    async def begin(self) -> None:
        """Bind the run to its workspace's content, where its lineage is; before anything else.

        Raises:
            StoreError, WriteRefused: it could not be recorded.
        """
        await self._parts.checkpoints.at_start()

    # ---- what happens -----------------------------------------------------------------------------------------------

    async def model_step(self, finished: StepFinished) -> Step:
        """Record one finished step of the model, whole, before anything of it is carried out.

        Args:
            finished: its text, thinking and calls in the order in which the model made them.

        Returns:
            The recorded step. A call whose provider id is empty or was used before has one of ours.

        Raises:
            ProviderFailed, ProviderStreamIncomplete: it cannot be recorded: no finish reason, an illegal name, too
                large.
            RunStopped: a person stopped the run, or an operation of it was left without an outcome.
            CallsUnanswered: the step before asked for calls that have no answer.
            StoreError, WriteRefused: it was not recorded.
        """
        self._check_open()
        step = step_of(finished, self._recorder, await self._recorder.run(), self._parts.ids)
        await self._recorder.record_step(step.facts)
        self._answered_by_model = True
        self._text = step.text or self._text
        self._calls.asked(step.calls)
        await self._bind(step)
        return step.handed_out()

    async def _bind(self, step: Step) -> None:
        """Check the calls, and keep what the workspace holds before the first of them may write."""
        bind = self._parts.functions.bind
        bound = [bind(call, step.unreadable.get(call.call_id)) for call in step.calls]
        if (detail := await self._parts.checkpoints.before_step(bound)) is not None:
            bound = without_writes(bound, detail)
        self._calls.bind(step.calls, bound)

    async def _answered(self) -> None:
        """Keep what the workspace holds after the last answer of a step."""
        if self._parts.checkpoints is UNBOUND:
            return
        if not any(operation.phase in _UNANSWERED for operation in unanswered_of(await self._recorder.run())):
            await self._parts.checkpoints.when_settled()

    async def steer(self, text: str) -> None:
        """Record what the user says while the run goes on; it is shown after the answers of the step that is open.

        Raises:
            StoreError, WriteRefused: it was not recorded.
            ValueError: the text is empty.
        """
        check_said(text)
        await self._recorder.append(UserMessage(**self._recorder.spine(), text=text, steering=True))

    def tool_call(self, call: ToolCalled | str) -> OpenCall:
        """One recorded call, to be carried out in a block of the caller's code: `async with` what is answered.

        Args:
            call: of a recorded step, or its id: ours, or the provider's, which then means its newest call.

        Raises:
            ValueError: no step recorded such a call, or it was carried out before.
            RunStopped: an operation of the run was left without an outcome, or it could not be recorded.
        """
        called, bound = self._take(call)
        blocks, tasks = self._parts.blocks, self._tasks
        return OpenCall(called, bound, blocks, self._recorder, self._stopping, tasks, self._tear, self._answered)

    async def call(self, call: ToolCalled | str, function: Does | None = None) -> Answer:
        """Carry one recorded call out by a function, with the time-outs and the stopping of our own loop.

        Args:
            call: as `tool_call` takes it.
            function: gets the stored arguments by name, and first a `ToolContext` where it declares one; a synchronous
                one runs in a thread. None where the tool of the catalog can be run itself, or where there is no such
                tool.

        Returns:
            What is committed, and what the model is to be shown: a result, an error, or a refusal before any effect.

        Raises:
            RunStopped: it was not carried out; the end of the run answers it.
            ToolNotOver: it did not end when it had to, and may still run.
            StoreError, WriteRefused: something could not be recorded.
            TypeError: nothing can be carried out by that, or there is no function; the call is as it was.
            ValueError: as `tool_call`.
        """
        if function is not None:
            check_function(function)
        elif isinstance(known := self._calls.look(call)[1], BoundCall) and known.elsewhere:
            name = self._calls.called(call).tool_name
            raise TypeError(f"{name} is carried out by the loop that has it: give its function")
        called, bound = self._take(call)
        if isinstance(bound, BoundCall) and function is not None:
            bound = _by(function, called, bound)
        work = partial(self._carry_out, called, bound)
        try:
            await in_a_task_of_its_own(self._tasks, work, f"safepoint call {called.tool_name}")
        except BaseException:
            self._calls.give_back(called, bound)
            raise
        answered = answer_of(self._recorder, called)
        if answered is None:
            raise RunStopped(self.identity.run_id, self.stopped_by)
        return answered

    async def _carry_out(self, called: ToolCalled, bound: BoundCall | Refused) -> None:
        boundary = self._parts.functions
        try:
            if isinstance(bound, Refused):
                await boundary.refuse(called, bound)
            else:
                await boundary.call(called, bound)
        except SafepointError:
            self._tear()
            raise
        await self._answered()

    async def decline(self, call: ToolCalled | str, why: str) -> Answer:
        """Answer a recorded call that the loop does not carry out: an error, no dispatch, the effect is none.

        Args:
            call: as `tool_call` takes it.
            why: what the model is shown.

        Raises:
            StoreError, WriteRefused: it was not recorded.
            TypeError: `why` is no text; the call is as it was.
            ValueError: as `tool_call`.
        """
        if not isinstance(why, str):
            raise TypeError(f"why a call is declined is text, not a {type(why).__name__}")
        called, bound = self._take(call)
        code = bound.code if isinstance(bound, Refused) else ResponseCode.REFUSED_WITHOUT_EFFECT
        try:
            await self._parts.functions.refuse(called, Refused(code, sayable(why)))
        except SafepointError:
            self._tear()
            raise
        answered = answer_of(self._recorder, called)
        assert answered is not None  # it is committed
        await self._answered()
        return answered

    def answer(self, call: ToolCalled | str) -> Answer | None:
        """The committed answer to a recorded call, None where it has none.

        Raises:
            ValueError: no step recorded such a call.
        """
        return self._calls.answer(call)

    def _take(self, call: ToolCalled | str) -> tuple[ToolCalled, BoundCall | Refused]:
        called, bound = self._calls.look(call)
        if self._torn:
            raise RunStopped(self.identity.run_id, self.stopped_by)
        self._calls.take(called)
        return called, bound

    def _tear(self) -> None:
        self._torn = True

    # ---- how it ends ------------------------------------------------------------------------------------------------

    def needs_no_answer(self) -> None:
        """Say that the run is done although its model was not asked: what is recorded says all that is to be said."""
        self._answered_by_model = True

    @property
    def forgotten(self) -> CallsUnanswered | NoStepRecorded | None:
        """The error for a loop that leaves the run although it may go on: its model, or its user, waits."""
        if self._torn or self.stopped_by is not None:
            return None
        if unanswered := self._calls.unanswered():
            return CallsUnanswered(self.identity.run_id, unanswered)
        return None if self._answered_by_model else NoStepRecorded(self.identity.run_id)

    async def done(self) -> RunOutcome:
        """End the run: completed; cancelled where a person stopped it; failed where a call has no outcome.

        A call that the loop did not carry out is closed as not executed, and the run counts as one that ended early; so
        does one without a step of its model.

        Raises:
            StoreError, WriteRefused: the terminal event was not written; repair will write one.
        """
        failure = None if self.stopped_by is not None else await self._unfinished()
        ending = self._parts.ending
        ended: tuple[RunStatus, FailureClass | None] = (
            await ending.done() if failure is None else await ending.failed(failure)
        )
        return self._ended(*ended)

    async def _unfinished(self) -> FailureClass | None:
        phases = {operation.phase for operation in unanswered_of(await self._recorder.run())}
        if self._torn or Phase.DISPATCHED in phases:
            return FailureClass.TOOL_NOT_OVER
        early = Phase.CALLED in phases or not self._answered_by_model
        return FailureClass.STEP_LIMIT if early else None

    async def failed(self, error: Exception) -> RunOutcome | None:
        """End the run because of an error, which is recorded by its class alone (R15); None where that is not possible.

        Raises:
            StoreError, WriteRefused: as `done`.
        """
        if not may_be_ended(error):
            return None
        if self.stopped_by is not None and not self._torn:
            return self._ended(*await self._parts.ending.cancelled())
        failure = FailureClass.TOOL_NOT_OVER if self._torn else _failure(error)
        return self._ended(*await self._parts.ending.failed(failure, error), detail=str(error))

    def _ended(self, status: RunStatus, failure: FailureClass | None, detail: str = "") -> RunOutcome:
        self.outcome = RunOutcome(status, failure, self._text, detail)
        return self.outcome


def _by(function: Does, called: ToolCalled, bound: BoundCall) -> BoundCall | Refused:
    """The call carried out by a function; refused where its arguments are not those of the function."""
    wrong = misfit(function, called.args) if isinstance(called.args, dict) else None
    return bound.carried_out_by(function) if wrong is None else mismatch(sayable(wrong))


def _failure(error: Exception) -> FailureClass:
    match error:
        case ProviderError():
            return error.failure_class
        case BudgetSpent():
            return FailureClass.STEP_LIMIT
        case _:
            return FailureClass.APP_RESTARTED
