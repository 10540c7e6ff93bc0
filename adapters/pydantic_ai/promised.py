"""A tool of pydantic-ai, and what its owner promises about repeating it. SPEC section 8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import Tool

from ...domain.events.tool import RecoveryMode
from ..tools.promised_tool import PromisedTool, contract


def promised(
    tool: Tool[Any] | Callable[..., Any],
    *,
    recovery: RecoveryMode | str | Callable[..., Any] = RecoveryMode.OUTCOME_UNKNOWN,
    **more: Any,
) -> PromisedTool:
    """Say what may be done about a call of this tool when its outcome is missing; by default nothing.

    A reader that needs no `RunContext` is run again by recovery; what else has no outcome, its agent alone could run.
    A toolset's tools, such as those of an MCP server, are promised by name: `safepoint.contract`.

    Args:
        tool: as the agent gets it: a function, or a `Tool`.
        recovery: as `safepoint.contract` takes it.
        more: `contract_id`, `version`, `resource_key`, `key_valid_seconds`, `no_effect_errors`, `repeat_free`,
            `writes_workspace`, as `safepoint.contract` takes them.

    Raises:
        ToolDefinitionError: the declaration contradicts itself.
    """
    made: Tool[Any] = tool if isinstance(tool, Tool) else Tool(tool)
    again = _again(made) if recovery == RecoveryMode.REPLAY_SAFE and not made.takes_ctx else None
    return contract(
        made.name,
        recovery=recovery,
        description=made.description or "",
        input_schema=made.tool_def.parameters_json_schema,
        carry_out=again,
        **more,
    )


def _again(tool: Tool[Any]) -> Callable[..., Any]:
    schema: Any = tool.function_schema

    async def run(**arguments: Any) -> Any:
        return await schema.call(schema.validator.validate_python(arguments), None)

    return run
