"""An agent in LangGraph is killed after it paid, and goes on without paying twice.

    python examples/langgraph_thread.py FOLDER

The folder exists and is empty. The program runs itself as a child, which is killed; then a person says what happened.
"""

# LangGraph itself is only partly typed.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

import safepoint
from safepoint.adapters.langgraph import SafeCheckpointer, Threads, promised

FOLDER, KILLED = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["be killed"]


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    with (FOLDER / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    if KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


async def model(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Stand for your model: ask for one payment, then say that it is done."""
    call = {"name": "pay", "args": {"amount": 10}, "id": "call_1"}
    paid = state["messages"][-1].type == "tool"
    return {"messages": [AIMessage("Paid.") if paid else AIMessage("I pay.", tool_calls=[call])]}


async def main() -> None:
    """Take a turn, or go on with the one that was interrupted."""
    async with (
        safepoint.open(FOLDER / "store.sqlite", tools=[promised(pay)]) as runtime,
        AsyncSqliteSaver.from_conn_string(str(FOLDER / "langgraph.sqlite")) as saver,
    ):
        threads = Threads(runtime)
        builder = StateGraph(MessagesState).add_node("agent", model).add_node("tools", threads.tool_node([pay]))
        builder.add_edge(START, "agent").add_conditional_edges("agent", tools_condition).add_edge("tools", "agent")
        graph = builder.compile(checkpointer=SafeCheckpointer(saver, threads))
        if KILLED:
            async with threads.turn(graph, "bill", "Pay the bill.") as turn:
                await graph.ainvoke(turn.input, turn.config)
        verdict = await threads.verdict("bill")
        print("safe to go on:", verdict.safe, *verdict.codes)
        session = runtime.session("bill")
        await session.repair()
        for one in verdict.unsettled:
            await session.settle(one.operation_id, "completed", by="alice", note="the bank says so", result="paid 10")
        async with threads.resume(graph, "bill") as turn:
            state = await graph.ainvoke(turn.input, turn.config)
        print(state["messages"][-1].text)


if __name__ == "__main__":
    if not KILLED:
        child = subprocess.run([sys.executable, __file__, str(FOLDER), "be killed"], check=False)
        print("killed" if child.returncode == -signal.SIGKILL else f"ended with {child.returncode}")
    anyio.run(main)
    print((FOLDER / "payments.txt").read_text().split())
