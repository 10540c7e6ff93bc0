"""LangGraph with its SQLite checkpointer, durability "sync": one node of a graph; the state stays small."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from .serving import ARGUMENTS, serve

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


class State(TypedDict):
    """What every checkpoint holds."""

    part: int
    wanted: int
    arguments: dict[str, str]
    result: str


def program(folder: Path) -> tuple[Callable[[int], list[float]], Mapping[str, object]]:
    """A thread of its own for each measurement; a step is what passes from one start of the node to the next."""
    connection = sqlite3.connect(folder / "langgraph.sqlite", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    starts: list[float] = []
    threads = count()

    def write_file(state: State) -> dict[str, object]:
        starts.append(time.perf_counter())
        return {"part": state["part"] + 1, "arguments": dict(ARGUMENTS), "result": "ok"}

    graph = StateGraph(State)
    graph.add_node("write_file", write_file)
    graph.add_edge(START, "write_file")
    graph.add_conditional_edges("write_file", lambda state: "write_file" if state["part"] < state["wanted"] else END)
    compiled = graph.compile(checkpointer=saver)

    def measured(number: int) -> list[float]:
        starts.clear()
        config: RunnableConfig = {
            "configurable": {"thread_id": f"thread-{next(threads)}"},
            "recursion_limit": 1_000_000,
        }
        begin: State = {"part": 0, "wanted": number + 1, "arguments": {}, "result": ""}
        compiled.invoke(begin, config, durability="sync")
        return [later - earlier for earlier, later in pairwise(starts)]

    settings = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
    return measured, settings


if __name__ == "__main__":
    serve(program)
