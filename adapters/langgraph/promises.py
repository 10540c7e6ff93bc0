"""A LangChain tool, and what its owner promises about repeating it. SPEC section 8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pydantic
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from ...application.current_call import handed
from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import Arguments, AsyncCall, BoundCall, Implementation, SchemaMismatch, ToolContext
from ..tools.declaration import ByArguments, Declaration, checked_declaration
from ..tools.promise import bound_call, tool_spec


class GraphTool:
    """Binds calls of one LangChain tool; made by `promised`."""

    def __init__(self, tool: BaseTool, declared: Declaration) -> None:
        self._tool = tool
        self._declared = declared
        self._schema = tool.tool_call_schema
        self._elsewhere = _takes_what_only_a_graph_has(tool)
        self.spec = tool_spec(tool.name, tool.description, _json_schema(self._schema), declared)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments as the tool itself would, and resolve the contract for them."""
        if not isinstance(arguments, dict):
            return SchemaMismatch(self.spec.name, "arguments: an object is expected")
        unnamed = sorted(set(arguments) - set(_names(self.spec.input_schema, arguments)))
        if unnamed:
            return SchemaMismatch(self.spec.name, f"{', '.join(unnamed)}: the tool has no such argument")
        try:
            if not isinstance(self._schema, dict):
                _validate(self._schema, arguments)
            bound = bound_call(self.spec, self._declared, arguments, lambda mode: self._implementation())
        except pydantic.ValidationError as misfit:
            places = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['type']}" for one in misfit.errors())
            return SchemaMismatch(self.spec.name, places)
        except Exception as error:  # noqa: BLE001 (a contract that cannot be told promises nothing: refused)
            return SchemaMismatch(self.spec.name, f"its contract cannot be told for them: {type(error).__name__}")
        return replace(bound, elsewhere=self._elsewhere)

    def _implementation(self) -> Implementation:
        return AsyncCall(self._run)

    async def _run(self, arguments: Arguments, context: ToolContext) -> object:
        """Carry the call out without a graph: for recovery, which reads again or delivers again."""
        asked = {"type": "tool_call", "id": context.operation_id, "name": self.spec.name, "args": dict(arguments)}
        with handed(context):
            message = await self._tool.ainvoke(asked)
        if isinstance(message, ToolMessage) and message.status == "error":
            raise RuntimeError(message.text)
        return message.content if isinstance(message, ToolMessage) else message


def promised(
    tool: BaseTool,
    *,
    recovery: RecoveryMode | str | ByArguments[RecoveryMode | str] = RecoveryMode.OUTCOME_UNKNOWN,
    contract_id: str | None = None,
    version: int = 1,
    resource_key: str | ByArguments[str | None] | None = None,
    key_valid_seconds: int | None = None,
    no_effect_errors: tuple[type[BaseException], ...] = (),
    repeat_free: bool = False,
    writes_workspace: bool | ByArguments[bool] | None = None,
) -> GraphTool:
    """Say what may be done about a call of this tool when its outcome is missing; by default nothing.

    Args:
        tool: of LangChain, with name, description and schema. One that takes state, store or runtime of its graph is
            never run again without the graph. Where its schema is a dictionary, names of arguments alone are checked.
        recovery, contract_id, version, resource_key, key_valid_seconds, no_effect_errors, repeat_free,
            writes_workspace: as `safepoint.contract` takes them.

    Raises:
        ToolDefinitionError: the declaration contradicts itself.
    """
    declared: dict[str, Any] = {
        "recovery": recovery,
        "contract_id": contract_id,
        "version": version,
        "resource_key": resource_key,
        "key_valid_seconds": key_valid_seconds,
        "no_effect_errors": no_effect_errors,
        "repeat_free": repeat_free,
        "writes_workspace": writes_workspace,
    }
    return GraphTool(tool, checked_declaration(tool.name, declared))


def _validate(schema: Any, arguments: Mapping[str, Json]) -> None:
    if issubclass(schema, pydantic.BaseModel):
        schema.model_validate(arguments)


def _json_schema(schema: Any) -> dict[str, Json]:
    made: dict[str, Json] = dict(schema) if isinstance(schema, dict) else schema.model_json_schema()
    return made


def _names(schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> Mapping[str, Any]:
    """The arguments that may be given: those of the schema, or any where it takes others, too."""
    properties = schema.get("properties")
    takes_others = bool(schema.get("additionalProperties")) or not isinstance(properties, dict)
    return arguments if takes_others or not isinstance(properties, dict) else properties


def _takes_what_only_a_graph_has(tool: BaseTool) -> bool:
    asked = tool.tool_call_schema
    if isinstance(asked, dict):
        return False
    whole = tool.get_input_schema()
    if not issubclass(whole, pydantic.BaseModel) or not issubclass(asked, pydantic.BaseModel):
        return False
    return set(whole.model_fields) != set(asked.model_fields)
