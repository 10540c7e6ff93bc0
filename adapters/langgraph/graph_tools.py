"""The tools of a graph: each must be one that the runtime promises for, in a node that lets calls be recorded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from langgraph.prebuilt import ToolNode

from ..embedding.unrecordable import AgentUnsupported, check_promised
from .states import Graph

_NOT_SEEN: Final = object()
"""For a version of LangGraph that keeps its wrappers elsewhere: then what was called is found by what is recorded."""


def check_tools(graph: Graph, known: Collection[str]) -> None:
    """Look at the nodes of tools that can be seen from outside, before anything of a turn is begun.

    Args:
        known: names of the runtime's tools.

    Raises:
        AgentUnsupported: a node calls its tools by itself, or one of them is not the runtime's.
    """
    for name, node in graph.nodes.items():
        if not isinstance(node.bound, ToolNode):
            continue
        if all(getattr(node.bound, wrap, _NOT_SEEN) is None for wrap in ("_wrap_tool_call", "_awrap_tool_call")):
            instead = "make it by `threads.tool_node(tools)`, or give it `awrap_tool_call=threads.awrap_tool_call`"
            raise AgentUnsupported(f"a call of the node {name!r}", instead)
        check_promised(node.bound.tools_by_name, known)
