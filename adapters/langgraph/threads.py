"""Turns of graphs over a runtime: a thread is a session, a turn a run, a tool call goes through T1 and T2. SPEC 17.

The graph's own checkpoints stay what they are. Where they and the record differ after a crash, the record is what
happened: the state is brought to it before the graph goes on, so no call runs that was answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import END
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from ...application.record_run import ResumeParked
from ...application.unanswered_calls import CallsUnanswered
from ...domain.events.run import Budgets
from ...domain.reasons import ParkReason
from ...domain.replay.items import HostItem, Item, UserItem
from ..embedding.recorded import RecordedRun
from ..embedding.runtime import Runtime
from ..embedding.unrecordable import check_promised
from .carrying_out import Execute, carried_out
from .graph_tools import check_tools
from .messages import Differs, id_of, lacking, last_turn, left_open
from .refusals import NoOpenTurn, NothingToResume, StateDiffers, ThreadNotSafe
from .states import Graph, States
from .turn import Turn
from .verdict import ThreadVerdict, verdict_of


class Paused(Exception):
    """The block of a turn was left while its graph waits: the run is ended so that it can be resumed."""


class Threads:
    """The threads of graphs, over one runtime.

    Args:
        runtime: open; its tools are those of the graphs, `promised`.
        tools_node: under which name the node of the tools stands in the graph.
        messages_key: under which key the messages stand in its state, which must be reduced by `add_messages`.
        states: how states of graphs are read and updated.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        tools_node: str = "tools",
        messages_key: str = "messages",
        states: States | None = None,
    ) -> None:
        self._runtime = runtime
        self._states = states or States()
        self._tools_node = tools_node
        self._key = messages_key
        self._open: dict[str, Turn] = {}

    # ---- is it safe, and what is open -------------------------------------------------------------------------------

    async def verdict(self, thread_id: str) -> ThreadVerdict:
        """Say whether a thread is safe to go on, and change nothing.

        Raises:
            StoreUnavailable: it could not be looked at, which is no answer.
        """
        return await verdict_of(self._runtime.session(thread_id))

    def is_open(self, thread_id: str) -> bool:
        """True while a turn of the thread is open here."""
        return thread_id in self._open

    @asynccontextmanager
    async def turn(
        self, graph: Graph, thread_id: str, text: str, *, budgets: Budgets | None = None
    ) -> AsyncIterator[Turn]:
        """A new turn: `async with threads.turn(graph, "bill", "Pay.") as turn`.

        In the block: `await graph.ainvoke(turn.input, turn.config)`, or `astream`, also several times.

        The turn is completed when the block is left and the graph has ended. Where it waits (`interrupt_before`), or
        the block is left by an exception, the turn can be resumed. Calls of an interrupted turn that are not resumed
        get the true answer: what is recorded, or that nobody knows.

        Args:
            graph: compiled, with a checkpointer.
            thread_id: 1 to 200 characters, no control characters; names the session, too.
            text: the user's message, not empty.
            budgets: what the turn may use, its continuations included; a step beyond them is not recorded, and none of
                its calls carried out.

        Raises:
            AgentUnsupported: the graph has a tool that the runtime was not opened with, or a `ToolNode` that calls its
                tools by itself; nothing was begun.
            SessionBusy, SessionQuarantined, HistoryUnusable, HistoryTooLarge: nothing was begun.
            StateDiffers: the thread's messages are not those of its interrupted turn.
            StoreError, WriteRefused: it was not begun, or could not be recorded any further.
        """
        check_tools(graph, self._tool_names)
        session = self._runtime.session(thread_id)
        summary = await session.summary()
        interrupted = summary is not None and summary.state.may_be_resumed
        async with self._opened(graph, thread_id, session.record(text, budgets=budgets)) as turn:
            turn.input = {self._key: await self._input(graph, turn, thread_id, interrupted)}
            yield turn

    async def _input(self, graph: Graph, turn: Turn, thread_id: str, interrupted: bool) -> list[AnyMessage]:
        items = turn.run.history()
        place = max(place for place, item in enumerate(items) if isinstance(item, UserItem))
        before, user, after = items[:place], items[place], items[place + 1 :]
        state = await self._messages(graph, turn.config)
        lacks: list[AnyMessage] = []
        if interrupted:
            await self._save_what_has_ended(graph, turn.config)
            lacks, _ = _lacking(state, before, thread_id)
            lacks += left_open([*state, *lacks])
        known = {message.id for message in (*state, *lacks)}
        notices = [item for item in before[len(before) - _trailing(before) :] if id_of(item.event_id) not in known]
        said = [*notices, user, *after]
        return [
            *lacks,
            *(HumanMessage(one.text, id=id_of(one.event_id)) for one in said if isinstance(one, UserItem | HostItem)),
        ]

    @asynccontextmanager
    async def resume(self, graph: Graph, thread_id: str, **request: Any) -> AsyncIterator[Turn]:
        """The continuation of a thread's interrupted turn: `await graph.ainvoke(turn.input, turn.config)` goes on.

        The state is brought to what is recorded before: calls that were answered are not run again, what a person
        settled is what the model is shown.

        Args:
            graph: compiled, with the checkpointer that the thread was begun with.
            thread_id: as in `turn`.
            request: `accept_drift`, `drop_permissions`, `adopt`, `reconcile`, `budgets`, as `Session.record_resume`
                takes them.

        Raises:
            AgentUnsupported: as `turn`.
            NothingToResume: no turn of it was interrupted; take a new one.
            ThreadNotSafe: it must not go on; the error says why, and what to do.
            StateDiffers: the thread's messages are not those of the turn.
            StoreError, WriteRefused: it was not begun, or could not be recorded any further.
        """
        check_tools(graph, self._tool_names)
        session = self._runtime.session(thread_id)
        try:
            async with self._opened(graph, thread_id, session.record_resume(**request)) as turn:
                await self._bring_to_record(graph, turn, thread_id)
                yield turn
        except ResumeParked as parked:
            if parked.parked.codes == (ParkReason.RESUME_CANDIDATE_MISSING,):
                raise NothingToResume(await verdict_of(session)) from parked
            unsettled = await session.unsettled()
            verdict = ThreadVerdict(thread_id, True, parked.parked.reasons, unsettled, session.store)
            raise ThreadNotSafe(verdict) from parked

    async def _bring_to_record(self, graph: Graph, turn: Turn, thread_id: str) -> None:
        state = await self._messages(graph, turn.config)
        lacks, recorded = _lacking(state, turn.run.history(), thread_id)
        turn.know(recorded)
        if not state and all(isinstance(message, HumanMessage) for message in lacks):
            turn.input = {self._key: lacks}  # the graph has not begun
        elif lacks:
            await self._save_what_has_ended(graph, turn.config)
            lacks = [*left_open([*state, *lacks]), *lacks]
            await self._states.update(graph, turn.config, {self._key: lacks}, self._tools_node)

    async def _save_what_has_ended(self, graph: Graph, config: RunnableConfig) -> None:
        """Let the state hold what its nodes have returned: an update is made on the checkpoint without it."""
        saved = await self._states.get(graph, config)
        if any(task.result for task in saved.tasks):
            await self._states.update(graph, config, None, END)

    @asynccontextmanager
    async def _opened(
        self, graph: Graph, thread_id: str, recorded: AbstractAsyncContextManager[RecordedRun]
    ) -> AsyncIterator[Turn]:
        finished = False
        try:
            async with recorded as run:
                with self._known(thread_id, run) as turn:
                    yield turn
                    await self._finish(graph, turn)
                    finished = True
        except Paused:
            return
        except CallsUnanswered:
            if not finished:
                raise  # else the graph ended before its tools, as it may: the turn is left to be resumed

    @contextmanager
    def _known(self, thread_id: str, run: RecordedRun) -> Iterator[Turn]:
        (*_, begin) = (item for item in run.history() if isinstance(item, UserItem) and not item.steering)
        turn = self._open[thread_id] = Turn(run, thread_id, id_of(begin.event_id))
        try:
            yield turn
        finally:
            del self._open[thread_id]

    async def _finish(self, graph: Graph, turn: Turn) -> None:
        """Record the rest of what the model said, where the graph has come to its end."""
        state = await self._states.get(graph, turn.config)
        if state.next:
            turn.waits_at = state.next
            raise Paused(f"the graph waits at {', '.join(state.next)}")
        messages = self._of(state.values)
        await turn.record(messages)
        await turn.check_answered_here(messages)
        if turn.has_begun(messages):
            turn.run.needs_no_answer()  # the graph has ended, with its model or without

    @property
    def _tool_names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self._runtime.agent.catalog.tools())

    async def _messages(self, graph: Graph, config: RunnableConfig) -> list[AnyMessage]:
        return self._of((await self._states.get(graph, config)).values)

    def _of(self, state: Any) -> list[AnyMessage]:
        if isinstance(state, list):
            return state
        found = state.get(self._key, []) if isinstance(state, dict) else getattr(state, self._key)
        return list(found) if isinstance(found, list | tuple) else [found]

    # ---- the tools --------------------------------------------------------------------------------------------------

    def tool_node(self, tools: Sequence[BaseTool], **more: Any) -> ToolNode:
        """The node of a graph's tools: each call goes through preflight, T1 and T2. What a tool raises is an answer.

        Args:
            tools: of the graph, each `promised` to the runtime.
            more: of `ToolNode`, such as `name` or `tags`.

        Raises:
            AgentUnsupported: the runtime was not opened with one of them.
        """
        self.check_promised(tools)
        return ToolNode(
            tools, messages_key=self._key, handle_tool_errors=False, awrap_tool_call=self.awrap_tool_call, **more
        )

    def check_promised(self, tools: Iterable[BaseTool]) -> None:
        """Do nothing where the runtime was opened with each of these.

        Raises:
            AgentUnsupported: it was not.
        """
        check_promised((tool.name for tool in tools), self._tool_names)

    async def awrap_tool_call(self, request: ToolCallRequest, execute: Execute) -> ToolMessage:
        """Carry one call of a tool node out, at most once; for `ToolNode(awrap_tool_call=...)` and agent middleware.

        Raises:
            NoOpenTurn: nobody would record it; nothing was done.
            AgentUnsupported: the runtime was not opened with this tool; nothing was done.
            BudgetSpent: a budget of the turn is used up; nothing was done.
            RunStopped: the turn was stopped, or a call of it was left without an outcome; nothing was done.
            InterruptInTool: the tool asked for an interrupt or a jump.
            StoreError, WriteRefused: T1 or T2 was not recorded; the model must not be shown a result.
        """
        thread_id = str(request.runtime.config.get("configurable", {}).get("thread_id", ""))
        turn = self._open.get(thread_id)
        if turn is None:
            raise NoOpenTurn(thread_id)
        if request.tool is not None:
            self.check_promised([request.tool])
        return await carried_out(turn, self._of(request.state), self._runtime.agent.catalog, request, execute)


def _lacking(state: Sequence[AnyMessage], items: Iterable[Item], thread_id: str) -> tuple[list[AnyMessage], set[str]]:
    try:
        return lacking(state, last_turn(items))
    except Differs as error:
        raise StateDiffers(thread_id, str(error)) from error


def _trailing(items: Sequence[Any]) -> int:
    """How many notices stand at the end of a history."""
    count = 0
    for item in reversed(items):
        if not isinstance(item, HostItem):
            break
        count += 1
    return count
