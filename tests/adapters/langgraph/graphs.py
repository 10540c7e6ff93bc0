"""A small agent in LangGraph that pays: alone, and with Safepoint; run as a program it is killed where it is told."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import anyio
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import safepoint
from safepoint.adapters.langgraph import SafeCheckpointer, SyncThreads, Threads, current_call, promised

ASKS = AIMessage("I pay.", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "c1"}])
ASKS_TWO = AIMessage("I pay both.", tool_calls=[*ASKS.tool_calls, {"name": "pay", "args": {"amount": 6}, "id": "c2"}])
PAID = AIMessage("Paid.")
THREAD: Any = {"configurable": {"thread_id": "bill"}}

Graph = CompiledStateGraph[Any, Any, Any, Any]


def die(here: str, where: str) -> None:
    """Die there as the kernel lets a process die."""
    if here == where:
        os.kill(os.getpid(), signal.SIGKILL)


def paying(folder: Path, where: str = "nowhere") -> BaseTool:
    """The tool: its effect is one more line in a file."""

    def pay(amount: int) -> str:
        """Pay an amount."""
        die("before the effect", where)
        call = current_call()
        with (folder / "payments.txt").open("a") as payments:
            payments.write(f"{amount} {call.idempotency_key if call else '-'}\n")
        die("after the effect", where)
        if where == "in a step that is half saved":
            assert WRITTEN.wait(30)
            die(where, where)
        die("in the second call" if amount == 6 else "in another call", where)
        return f"paid {amount}"

    return StructuredTool.from_function(pay)


def agent(says: Sequence[AIMessage], tools: ToolNode, saver: Any, where: str = "nowhere", **more: Any) -> Graph:
    """The graph: a model, tools, and back."""
    model = FakeMessagesListChatModel(responses=[*says])

    def answers(state: MessagesState) -> dict[str, list[AnyMessage]]:
        if state["messages"][-1].type == "tool":
            die("after it was recorded", where)
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", answers)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    compiled: Graph = graph.compile(checkpointer=saver, **more)
    return compiled


WRITTEN = Event()


class HalfSaving(AsyncSqliteSaver):
    """Saves what the model's node returned, and never the checkpoint after it."""

    async def aput_writes(self, *given: Any, **more: Any) -> None:
        await super().aput_writes(*given, **more)
        WRITTEN.set()

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata["step"] == 1:
            await anyio.sleep_forever()
        return await super().aput(config, checkpoint, metadata, new_versions)


def saver(folder: Path, where: str = "nowhere") -> Any:
    """LangGraph's own checkpointer."""
    kind = HalfSaving if where == "in a step that is half saved" else AsyncSqliteSaver
    return kind.from_conn_string(str(folder / "langgraph.sqlite"))


def opened(folder: Path, tools: Sequence[Any]) -> safepoint.Runtime:
    """A store beside it."""
    return safepoint.open(folder / "store.sqlite", model=safepoint.NamedModel("fake", "list"), tools=tools)


def sync_saver(folder: Path) -> Any:
    """LangGraph's own checkpointer, without an event loop."""
    return SqliteSaver.from_conn_string(str(folder / "langgraph.sqlite"))


def opened_sync(folder: Path, tools: Sequence[Any]) -> safepoint.SyncRuntime:
    """A store beside it, without an event loop."""
    return safepoint.open_sync(folder / "store.sqlite", model=safepoint.NamedModel("fake", "list"), tools=tools)


async def alone(folder: Path, where: str, durability: Any) -> None:
    """LangGraph as it is."""
    async with saver(folder) as checkpoints:
        graph = agent([ASKS, PAID], ToolNode([paying(folder, where)]), checkpoints, where)
        await graph.ainvoke({"messages": [("user", "Pay the bill.")]}, THREAD, durability=durability)


async def guarded(folder: Path, where: str, durability: Any, mode: str = "outcome_unknown") -> None:
    """The same with Safepoint."""
    pay = paying(folder, where)
    seconds = 3600 if mode == "idempotent" else None
    tools = [promised(pay, recovery=mode, key_valid_seconds=seconds)]
    async with opened(folder, tools) as runtime, saver(folder, where) as checkpoints:
        threads = Threads(runtime)
        asks = ASKS_TWO if where == "in the second call" else ASKS
        graph = agent([asks, PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads), where)
        async with threads.turn(graph, "bill", "Pay the bill.") as turn:
            await graph.ainvoke(turn.input, turn.config, durability=durability)
            die("after it ended", where)


def blocking(folder: Path, where: str, durability: Any) -> None:
    """The same for a script without an event loop."""
    pay = paying(folder, where)
    with opened_sync(folder, [promised(pay)]) as runtime, sync_saver(folder) as checkpoints:
        threads = SyncThreads(runtime)
        graph = agent([ASKS, PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads), where)
        with threads.turn(graph, "bill", "Pay the bill.") as turn:
            graph.invoke(turn.input, turn.config, durability=durability)


if __name__ == "__main__":
    runs: dict[str, Any] = {"alone": alone, "guarded": guarded}
    if sys.argv[1] in runs:
        anyio.run(runs[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
    else:
        blocking(Path(sys.argv[2]), *sys.argv[3:])
