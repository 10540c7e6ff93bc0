"""How states of graphs are read and updated."""

from __future__ import annotations

from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


class States:
    """Reads and updates the states of graphs; the checkpointer is one for event loops."""

    async def get(self, graph: Graph, config: RunnableConfig) -> StateSnapshot:
        """The state as it is saved."""
        return await graph.aget_state(config)

    async def update(self, graph: Graph, config: RunnableConfig, values: dict[str, Any] | None, as_node: str) -> None:
        """Save what a node of the graph would have returned."""
        await graph.aupdate_state(config, values, as_node=as_node)
