"""MCP servers, connected together: their tools for one runtime, and those that are not there. SPEC 13 and 17."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio

from ..tools.declaration import ToolDefinitionError
from .connection import Connection
from .remote_tool import RemoteTool
from .server import Server

CLOSE_SECONDS_MAX: Final = 10.0


@dataclass(frozen=True, slots=True)
class Connected:
    """What came of connecting; fixed from then on.

    Attributes:
        tools: of all servers that answered, for `safepoint.open(tools=[*connected.tools, ...])`; named `server__tool`.
        gone: servers that could not be asked, and why. What a run used of them parks its resume as
            `tool_catalog_mismatch`.
        left_out: tools that cannot be used, and why.
    """

    tools: tuple[RemoteTool, ...]
    gone: Mapping[str, str]
    left_out: Mapping[str, str]


@asynccontextmanager
async def connect(servers: Iterable[Server]) -> AsyncIterator[Connected]:
    """Connect to servers: `async with connect([Server(name="bank", command="bank-mcp")]) as connected`.

    A server that is gone raises nothing here: what it had is missing, and a plan says what that means.

    Args:
        servers: each with a name of its own.

    Raises:
        ValueError: two have one name.
    """
    connections = [Connection(server) for server in servers]
    if len({connection.server.name for connection in connections}) < len(connections):
        raise ValueError("two servers have one name")
    problem: Exception | None = None
    async with anyio.create_task_group() as group:
        for connection in connections:
            group.start_soon(connection.hold)
        try:
            for connection in connections:
                await connection.connected()
            yield _found(connections)
        except Exception as error:  # noqa: BLE001 (raised below, outside of the group, which would wrap it)
            problem = error
        finally:
            for connection in connections:
                connection.close()
            with anyio.move_on_after(CLOSE_SECONDS_MAX, shield=True):
                for connection in connections:
                    await connection.ended.wait()
            group.cancel_scope.cancel()
    if problem is not None:
        raise problem


def _found(connections: list[Connection]) -> Connected:
    tools: list[RemoteTool] = []
    left_out: dict[str, str] = {}
    for connection in connections:
        for tool in () if connection.lost else connection.tools:
            try:
                tools.append(RemoteTool(connection, tool))
            except (ToolDefinitionError, ValueError) as error:
                left_out[f"{connection.server.name}__{tool.name}"] = str(error)
    gone = {connection.server.name: connection.lost for connection in connections if connection.lost}
    return Connected(tuple(tools), gone, left_out)
