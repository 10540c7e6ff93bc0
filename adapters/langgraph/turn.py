"""One open turn of a thread, and what the model says in it. SPEC section 17."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig

from ...application.open_call import CallRefused
from ...domain.events.tool import ToolCalled
from ..embedding.recorded import RecordedRun
from .messages import answers_since, step_of


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

    async def record(self, state: Sequence[AnyMessage]) -> None:
        """Record what the model said in this turn and what is not recorded yet, in order."""
        async with self._recording:
            for message in answers_since(state, self._user_message_id):
                if str(message.id) not in self._recorded:
                    await self._record(message)

    async def _record(self, message: AIMessage) -> None:
        self.run.check()  # the model was asked by the graph; what it may not have said is not carried out
        step = await self.run.model_step(step_of(message))
        self._recorded.add(str(message.id))
        readable = len(message.tool_calls)
        for asked, call in zip(message.tool_calls, step.calls, strict=False):
            self._calls[str(message.id), asked["id"]] = call
        for call in step.calls[readable:]:  # the graph calls no tool for it, and tells the model nothing
            await _refuse(self.run, call)

    def called(self, message: AIMessage, call_id: str | None) -> ToolCalled | None:
        """The recorded call, None where its step was recorded before this turn was opened."""
        return self._calls.get((str(message.id), call_id))


async def _refuse(run: RecordedRun, call: ToolCalled) -> None:
    try:
        async with run.tool_call(call) as operation:
            operation.refused("the graph could not read its arguments")
    except CallRefused:
        return
