"""One open turn of a thread, and what the model says in it. SPEC section 17."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from ...application.call_answers import CallRefused
from ...application.open_call import OpenCall
from ...domain.events.tool import Effect, ToolCalled
from ..embedding.recorded import RecordedRun
from ..embedding.unrecordable import AgentUnsupported
from .messages import answers_since, step_of

_OUTSIDE: Final = "The graph answered this call where nobody recorded it; its effect is not certain."
_INSTEAD: Final = "let `threads.tool_node` carry it out; who is to be asked before it, is by `permission='ask'`"


class Turn:
    """One open turn of a thread; of `Threads.turn` or `Threads.resume`.

    Attributes:
        run: the recorded run.
        thread_id: names the thread, and the session.
        config: for the graph: names the thread.
        input: for the graph: the user's message, behind what the state lacks of an interrupted turn; None on a resume.
        waits_at: the nodes that the graph waits at, once the block was left; the turn can then be resumed.
    """

    def __init__(self, run: RecordedRun, thread_id: str, user_message_id: str) -> None:
        self.run = run
        self.thread_id = thread_id
        self.config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        self.input: Any = None
        self.waits_at: tuple[str, ...] = ()
        self.order = anyio.Lock()
        self._user_message_id = user_message_id
        self._recording = anyio.Lock()
        self._calls: dict[tuple[str, str | None], ToolCalled] = {}
        self._recorded: set[str] = set()

    def know(self, recorded: set[str]) -> None:
        """Take the ids of messages that are recorded already."""
        self._recorded |= recorded

    def has_begun(self, state: Sequence[AnyMessage]) -> bool:
        """Whether the graph was given the user's message."""
        return any(message.id == self._user_message_id for message in state)

    async def record(self, state: Sequence[AnyMessage]) -> None:
        """Record what the model said in this turn and what is not recorded yet, in order."""
        async with self._recording:
            for message in answers_since(state, self._user_message_id):
                if str(message.id) not in self._recorded:
                    await self.check_answered_here(state)
                    await self._record(message)

    async def check_answered_here(self, state: Sequence[AnyMessage]) -> None:
        """Do nothing where each answer that the state has to a call of this run is a recorded one.

        Raises:
            AgentUnsupported: a call was answered where nobody recorded it: its effect is recorded as not certain.
            StoreError, WriteRefused: that was not recorded.
        """
        outside = [call for call in self._answered(state) if self.run.answer(call) is None]
        for call in outside:
            await _answer(self.run, call, lambda one: one.error(_OUTSIDE, effect=Effect.UNKNOWN))
        if outside:
            raise AgentUnsupported(f"a call of {outside[0].tool_name} outside of the node of tools", _INSTEAD)

    def _answered(self, state: Sequence[AnyMessage]) -> list[ToolCalled]:
        said: dict[str | None, ToolCalled] = {}
        answered: list[ToolCalled] = []
        for message in state:
            if isinstance(message, AIMessage):
                said = {one["id"]: call for one in message.tool_calls if (call := self.called(message, one["id"]))}
            elif isinstance(message, ToolMessage) and message.tool_call_id in said:
                answered.append(said[message.tool_call_id])
        return answered

    async def _record(self, message: AIMessage) -> None:
        self.run.check()  # the model was asked by the graph; what it may not have said is not carried out
        step = await self.run.model_step(step_of(message))
        self._recorded.add(str(message.id))
        readable = len(message.tool_calls)
        for asked, call in zip(message.tool_calls, step.calls, strict=False):
            self._calls[str(message.id), asked["id"]] = call
        for call in step.calls[readable:]:  # the graph calls no tool for it, and tells the model nothing
            await _answer(self.run, call, lambda one: one.refused("the graph could not read its arguments"))

    def called(self, message: AIMessage, call_id: str | None) -> ToolCalled | None:
        """The recorded call, None where its step was recorded before this turn was opened."""
        return self._calls.get((str(message.id), call_id))


async def _answer(run: RecordedRun, call: ToolCalled, say: Callable[[OpenCall], None]) -> None:
    try:
        async with run.tool_call(call) as operation:
            say(operation)
    except CallRefused:
        return
