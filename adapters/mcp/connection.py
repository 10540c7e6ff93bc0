"""One MCP server, connected for as long as its catalog is used. SPEC section 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import anyio
import httpx2
import pydantic
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, Tool

from ...domain.errors import RefusedWithoutEffect
from ...domain.events.event import Json
from ...ports.tool_catalog import OutcomeNotSeen
from .server import Server

TOOLS_MAX: Final = 1_000
HTTP_SECONDS_MAX: Final = 30.0
HTTP_READ_SECONDS_MAX: Final = 300.0
KEY: Final = "safepoint/idempotency-key"
"""Under which the operation's key stands in the `_meta` of a call, for servers that know it."""
_NOT_SEEN: Final = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})


class Connection:
    """Holds the client in a task of its own, so that what happens to one server happens to nothing else.

    Attributes:
        server: which.
        tools: as it listed them.
        lost: why it can no longer be asked; None while it can.
        ready: set once its tools are listed, or it is lost.
        ended: set once nothing of it is open.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tools: tuple[Tool, ...] = ()
        self.lost: str | None = None
        self.ready, self.ended = anyio.Event(), anyio.Event()
        self._leave = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._client: Client | None = None
        self._told: list[Callable[[], None]] = []

    async def hold(self) -> None:
        """Connect, list, and stay connected until `close`; what goes wrong is told in `lost`, and never raised."""
        self._scope = anyio.CancelScope()
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    self._client = await stack.enter_async_context(await self._opened(stack))
                    self.tools = await self._listed(self._client)
                    self.ready.set()
                    await self._leave.wait()
        except Exception as error:  # noqa: BLE001 (a server may fail in any way; its tools are then missing)
            self.lost = self.lost or _said(error)
        finally:
            self.lost = self.lost or "it is closed"
            self._client = None
            self.ready.set()
            with anyio.CancelScope(shield=True):
                while self._told:
                    await anyio.to_thread.run_sync(self._told.pop())
            self.ended.set()

    async def connected(self) -> None:
        """Wait until it is ready, within the server's time; one that takes longer is lost."""
        with anyio.move_on_after(self.server.connect_seconds_max):
            await self.ready.wait()
            return
        self.lost = f"it listed no tools within {self.server.connect_seconds_max:g} s"
        if self._scope is not None:
            self._scope.cancel()
        await self.ended.wait()

    def when_over(self, tell: Callable[[], None]) -> None:
        """Tell somebody, from a thread, once the connection is closed and its server's process has been waited for.

        A server at an address goes on with whatever it was asked for: nobody is told of that.
        """
        if self.server.url is None and not self.ended.is_set():
            self._told.append(tell)

    def close(self) -> None:
        """Let the client go; `ended` tells when that is done."""
        self._leave.set()

    async def call(self, tool: str, arguments: Mapping[str, Json], idempotency_key: str) -> CallToolResult:
        """Ask for one call, once; nothing is sent again.

        Raises:
            RefusedWithoutEffect: nothing was sent, because the connection was lost before.
            OutcomeNotSeen: it was sent, or may have been, and nobody answered.
            MCPError: the server answered with an error, which proves nothing of the effect.
        """
        if self._client is None or self.lost is not None:
            raise RefusedWithoutEffect(f"MCP server {self.server.name} cannot be asked: {self.lost}")
        meta: Any = {KEY: idempotency_key}
        seconds = self.server.call_seconds_max
        try:
            return await self._client.call_tool(tool, dict(arguments), read_timeout_seconds=seconds, meta=meta)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self.lost = "its connection was closed"
                self.close()
            if error.code in _NOT_SEEN:
                raise self._not_seen(f"MCP server {self.server.name} did not answer: {error.message}") from error
            raise
        except (RuntimeError, pydantic.ValidationError):
            raise  # it answered, and not as its schema says
        except anyio.get_cancelled_exc_class():
            # The server is told, and may go on all the same.
            raise self._not_seen(f"the call to MCP server {self.server.name} was given up") from None
        except Exception as error:
            self.lost = _said(error)
            self.close()
            raise self._not_seen(f"MCP server {self.server.name} was lost: {self.lost}") from error

    def _not_seen(self, said: str) -> OutcomeNotSeen:
        return OutcomeNotSeen(said, when_over=self.when_over)

    async def _opened(self, stack: AsyncExitStack) -> Client:
        server = self.server
        if server.url is None:
            assert server.command is not None
            env = None if server.env is None else dict(server.env)
            start = StdioServerParameters(command=server.command, args=list(server.args), env=env, cwd=server.cwd)
            return Client(stdio_client(start))
        headers = None if server.headers is None else dict(server.headers)
        # Whoever waits for a call gives up by its own time; the client's own must not be shorter.
        time = httpx2.Timeout(HTTP_SECONDS_MAX, read=max(HTTP_READ_SECONDS_MAX, 2 * server.call_seconds_max))
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=time))
        return Client(streamable_http_client(server.url, http_client=http))

    async def _listed(self, client: Client) -> tuple[Tool, ...]:
        tools: list[Tool] = []
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if len(tools) > TOOLS_MAX:
                raise ValueError(f"it lists more than {TOOLS_MAX} tools")
            if not cursor:
                return tuple(tools)


def _said(error: BaseException) -> str:
    """Name the first cause: what is below groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
