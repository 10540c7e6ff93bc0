"""A tool of an MCP server, with what the server's trust makes of its hints. SPEC section 8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import Tool

from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import Arguments, AsyncCall, BoundCall, SchemaMismatch, ToolContext
from ..tools.declaration import Declaration
from ..tools.json_schema import JsonSchema
from ..tools.promise import bound_call, tool_spec
from .connection import Connection
from .results import result_of, text_of
from .server import Server


class ToolFailed(Exception):
    """The server said that its tool failed, which proves nothing of the effect."""


class RemoteTool:
    """Binds calls of one tool of a server.

    Raises:
        ToolDefinitionError: its schema is none.
    """

    def __init__(self, connection: Connection, tool: Tool) -> None:
        server = connection.server
        name = f"{server.name}__{tool.name}"
        self._connection = connection
        self._tool_name = tool.name
        self._declared = declaration_of(server, tool)
        self._schema: Mapping[str, Any] = tool.input_schema
        self._checked = JsonSchema(name, tool.input_schema, whose="the server's schema")
        self.spec = tool_spec(name, tool.description or "", tool.input_schema, self._declared)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments against the server's schema; nothing is fetched for it."""
        if not isinstance(arguments, dict):
            return SchemaMismatch(self.spec.name, "arguments: an object is expected")
        unnamed = sorted(set(arguments) - self._named(arguments))
        if unnamed:
            return SchemaMismatch(self.spec.name, f"{', '.join(unnamed)}: the tool has no such argument")
        if (misfit := self._checked.misfit(arguments)) is not None:
            return SchemaMismatch(self.spec.name, misfit)
        return bound_call(self.spec, self._declared, arguments, lambda mode: AsyncCall(self._run))

    def _named(self, arguments: Mapping[str, Json]) -> set[str]:
        """The arguments that the schema names; all, where it says that it takes others, too."""
        properties = self._schema.get("properties")
        others = self._schema.get("additionalProperties") or self._schema.get("patternProperties")
        composed = any(word in self._schema for word in ("$ref", "allOf", "anyOf", "oneOf"))
        return set(arguments) if others or composed else set(properties or ())

    async def _run(self, arguments: Arguments, context: ToolContext) -> Json:
        answer = await self._connection.call(self._tool_name, arguments, context.idempotency_key)
        if answer.is_error:
            raise ToolFailed(text_of(answer))
        return result_of(answer)


def declaration_of(server: Server, tool: Tool) -> Declaration:
    """What may be done about a call of the tool when its outcome is missing: nothing, unless the server is trusted."""
    hints = tool.annotations
    contract = f"mcp:{server.name}:{tool.name}"
    if server.trusted and hints is not None and hints.read_only_hint:
        return Declaration(recovery=RecoveryMode.REPLAY_SAFE, contract_id=contract)
    if server.trusted and hints is not None and hints.idempotent_hint:
        seconds = server.key_valid_seconds
        return Declaration(recovery=RecoveryMode.IDEMPOTENT, contract_id=contract, key_valid_seconds=seconds)
    return Declaration(contract_id=contract)
