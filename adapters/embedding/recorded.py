"""What a loop of one's own tells of a run, in its provider's own words. SPEC sections 12 and 17."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ...application.agent import Agent
from ...application.agent_loop import RunOutcome
from ...application.call_answers import Answer
from ...application.intake import Step
from ...application.open_call import OpenCall
from ...application.recorded_run import RecordedRun as Recorded
from ...domain.events.tool import ToolCalled
from ...domain.identifiers import RunId, SessionId
from ...domain.own_copies import own_items
from ...domain.replay.items import Item
from ...ports.model_step import StepFinished
from .happenings import ContentNotBound
from .messages import Format, messages, step_from
from .own_process import OwnProcess


class RecordedRun:
    """One open run that a loop of one's own drives; of `Session.record` or `Session.record_resume`.

    The order is the loop's to keep, and each part is checked: the model's step is recorded before its calls are carried
    out, T1 is durable before an effect, T2 before the model is shown it. All methods belong to one event loop, in the
    process that opened the runtime (`OpenedBeforeFork`).
    """

    def __init__(self, recorded: Recorded, agent: Agent) -> None:
        self._open = recorded
        self._own = OwnProcess()
        self._agent = agent

    @property
    def _recorded(self) -> Recorded:
        self._own.check()
        return self._open

    @property
    def session_id(self) -> SessionId:
        """The conversation."""
        return self._recorded.identity.session_id

    @property
    def run_id(self) -> RunId:
        """The run."""
        return self._recorded.identity.run_id

    @property
    def outcome(self) -> RunOutcome | None:
        """How the run ended, once its block was left; None where repair is to close it."""
        return self._recorded.outcome

    @property
    def not_bound(self) -> ContentNotBound | None:
        """Why this turn is not bound to the content of its workspace, where that was to be and was not possible."""
        why = self._recorded.not_bound
        return None if why is None else ContentNotBound.of(self.session_id, why)

    @property
    def stopped_by(self) -> str | None:
        """Who stopped the run, None while it may go on."""
        return self._recorded.stopped_by

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools that the runtime was opened with: no other is ever carried out."""
        return frozenset(tool.name for tool in self._agent.catalog.tools())

    @overload
    def history(self) -> tuple[Item, ...]: ...

    @overload
    def history(self, format: Format) -> list[Any]: ...

    def history(self, format: Format | None = None) -> tuple[Item, ...] | list[Any]:  # noqa: A002 (it is the word for it)
        """What the model is to be shown next: earlier turns, this one's message, and what it did since.

        Calls without an answer are not in it. Each answer that is, is committed. It is a copy: whatever becomes of it,
        the run and what its model is shown next stay what they are.

        Args:
            format: of the provider's package; None for items in no provider's format. The system prompt stands first in
                `openai-chat`, and is a parameter of the request in the others.
        """
        items = self._recorded.history()
        if format is None:
            return own_items(items)
        return messages(items, format, system_prompt=self._agent.system_prompt)

    def check(self) -> None:
        """Do nothing while the model may be asked for another step.

        Raises:
            RunStopped: a person stopped the run, or an operation of it was left without an outcome.
            CallsUnanswered: the step before asked for calls that have no answer.
            BudgetSpent: one of the turn's budgets is used up.
        """
        self._recorded.check()

    async def model_step(self, answer: object, format: Format | None = None) -> Step:  # noqa: A002 (it is the word for it)
        """Record what the model answered, whole, before anything of it is carried out.

        Args:
            answer: as the provider's own package gave it, or its dictionary; or a `StepFinished`, such as `step` makes.
            format: of the answer; None where it is a `StepFinished`.

        Returns:
            The recorded step: its `text`, and its `calls`, each with `call_id`, `tool_name` and `args`. A call whose
            provider id is empty or was used before has an id of ours.

        Raises:
            ProviderFailed, ProviderStreamIncomplete: it is no finished step, or cannot be recorded.
            RunStopped: a person stopped the run, or an operation of it was left without an outcome.
            CallsUnanswered: the step before asked for calls that have no answer.
            StoreError, WriteRefused: it was not recorded.
            TypeError: it has no format, and is no `StepFinished`.
        """
        if format is not None:
            answer = step_from(answer, format)
        if not isinstance(answer, StepFinished):
            raise TypeError(f"a {type(answer).__name__} is no finished step: say its format")
        return await self._recorded.model_step(answer)

    def needs_no_answer(self) -> None:
        """Say that the run is done although its model was not asked: what is recorded says all that is to be said.

        Without it, a run that is left without a step of its model ends as failed (`NoStepRecorded`).
        """
        self._recorded.needs_no_answer()

    async def steer(self, text: str) -> None:
        """Record what the user says while the run goes on; it is shown after the answers of the open step."""
        await self._recorded.steer(text)

    def tool_call(self, call: ToolCalled | str) -> OpenCall:
        """Carry one recorded call out in a block of one's own: `async with run.tool_call(call) as operation`.

        Entering it is preflight and T1, leaving it is T2. The block says once what came of it, by `operation.result`,
        `.error` or `.refused`; torn away before, the operation is indeterminate, and the run goes no further.

        Args:
            call: of a recorded step, or its id: ours, or the provider's, which then means its newest call.

        Raises:
            CallRefused: on entry: the call is answered, and must not be carried out.
            RunStopped: it must not be carried out; the end of the run answers it.
            OutcomeNotDeclared: on leaving: the block said nothing.
            ValueError: no step recorded such a call, or it was carried out before.
            StoreError, WriteRefused: T1 or T2 was not recorded.
        """
        return self._recorded.tool_call(call)

    async def call(self, call: ToolCalled | str, function: Callable[..., Any] | None = None) -> Answer:
        """Carry one recorded call out by a function, with the time-outs and the stopping of our own loop.

        A cancellation goes on as one. What was running then is ended, or left to its thread, and has no outcome unless
        it says so; the run goes no further.

        Args:
            call: as `tool_call` takes it.
            function: gets the stored arguments by name, and first a `ToolContext` where it declares one; a synchronous
                one runs in a thread, and what it returns is awaited where it can be. None where the tool itself is a
                function, or where there is no such tool: the call is then refused.

        Returns:
            The committed answer: a result, an error, or a refusal before any effect.

        Raises:
            RunStopped: it was not carried out; the end of the run answers it.
            ToolNotOver: it did not end when it had to, and may still run.
            TypeError: it is no function, or a generator, or None for a tool that your loop carries out: nothing would
                run. The call is as it was.
            ValueError: as `tool_call`.
            StoreError, WriteRefused: something could not be recorded.
        """
        return await self._recorded.call(call, function)

    async def decline(self, call: ToolCalled | str, why: str) -> Answer:
        """Answer one recorded call that is not carried out: an error that the model is shown, and no effect.

        Args:
            call: as `tool_call` takes it.
            why: the text of the answer.

        Raises:
            ValueError: no step recorded such a call, or it was carried out before.
            StoreError, WriteRefused: it was not recorded.
        """
        return await self._recorded.decline(call, why)

    def answer(self, call: ToolCalled | str) -> Answer | None:
        """The committed answer to a recorded call, None where it has none.

        Raises:
            ValueError: no step recorded such a call.
        """
        return self._recorded.answer(call)
