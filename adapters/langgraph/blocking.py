"""The same for graphs that are run by `invoke` and `stream`, without an event loop of their own. SPEC section 17."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from anyio import to_thread
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, StateSnapshot

from ...domain.events.run import Budgets
from ..embedding.blocking import SyncRuntime
from ..embedding.blocking_run import SyncRecordedRun
from ..embedding.portal import Portal
from .states import Graph, States
from .threads import Threads
from .turn import Turn
from .verdict import ThreadVerdict

Execute = Callable[[ToolCallRequest], ToolMessage | Command[Any]]


class _BlockingStates(States):
    """Where the checkpointer is one without an event loop."""

    async def get(self, graph: Graph, config: RunnableConfig) -> StateSnapshot:
        return await to_thread.run_sync(graph.get_state, config)

    async def update(self, graph: Graph, config: RunnableConfig, values: dict[str, Any] | None, as_node: str) -> None:
        await to_thread.run_sync(partial(graph.update_state, config, values, as_node=as_node))


class SyncTurn:
    """As `Turn`: `graph.invoke(turn.input, turn.config)`."""

    def __init__(self, turn: Turn, portal: Portal) -> None:
        self._turn = turn
        self.run = SyncRecordedRun(turn.run, portal)
        self.config = turn.config
        self.input: Any = turn.input

    @property
    def waits_at(self) -> tuple[str, ...]:
        """See `Turn`."""
        return self._turn.waits_at


class SyncThreads:
    """As `Threads`, over a `SyncRuntime`; from any thread.

    Args:
        runtime, tools_node, messages_key: as `Threads` takes them.
    """

    def __init__(self, runtime: SyncRuntime, *, tools_node: str = "tools", messages_key: str = "messages") -> None:
        beneath, self._portal = runtime.beneath
        self._key = messages_key
        states = _BlockingStates()
        self._threads = Threads(beneath, tools_node=tools_node, messages_key=messages_key, states=states)

    def verdict(self, thread_id: str) -> ThreadVerdict:
        """See `Threads.verdict`."""
        return self._portal.call(self._threads.verdict, thread_id)

    def is_open(self, thread_id: str) -> bool:
        """See `Threads.is_open`."""
        return self._threads.is_open(thread_id)

    @contextmanager
    def turn(self, graph: Graph, thread_id: str, text: str, *, budgets: Budgets | None = None) -> Iterator[SyncTurn]:
        """See `Threads.turn`."""
        opened = self._threads.turn(graph, thread_id, text, budgets=budgets)
        with self._portal.block(opened) as turn:
            yield SyncTurn(turn, self._portal)

    @contextmanager
    def resume(self, graph: Graph, thread_id: str, **request: Any) -> Iterator[SyncTurn]:
        """See `Threads.resume`."""
        with self._portal.block(self._threads.resume(graph, thread_id, **request)) as turn:
            yield SyncTurn(turn, self._portal)

    def tool_node(self, tools: Sequence[BaseTool], **more: Any) -> ToolNode:
        """See `Threads.tool_node`."""
        self._threads.check_promised(tools)
        wrap: Any = self.wrap_tool_call
        return ToolNode(tools, messages_key=self._key, handle_tool_errors=False, wrap_tool_call=wrap, **more)

    def wrap_tool_call(self, request: ToolCallRequest, execute: Execute) -> ToolMessage:
        """See `Threads.awrap_tool_call`; the tool runs in a thread."""

        async def carried_out(asked: ToolCallRequest) -> ToolMessage | Command[Any]:
            return await to_thread.run_sync(execute, asked)

        return self._portal.call(self._threads.awrap_tool_call, request, carried_out)
