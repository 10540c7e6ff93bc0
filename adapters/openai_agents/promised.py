"""A function tool of the OpenAI Agents SDK, and what its owner promises about repeating it. SPEC section 8."""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable
from typing import Any

from agents import FunctionTool, RunContextWrapper
from agents.tool import set_function_tool_failure_error_function
from agents.tool_context import ToolContext

from ...domain.canonical import encode
from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import BoundCall, SchemaMismatch
from ..tools.promised_tool import PromisedTool, contract
from .arguments import ToolArguments


class AgentTool:
    """Binds calls of one function tool; made by `promised`."""

    def __init__(self, promise: PromisedTool, arguments: ToolArguments) -> None:
        self._promise = promise
        self._arguments = arguments
        self.spec = promise.spec

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments, and resolve the contract for them."""
        if isinstance(arguments, dict) and (misfit := self._arguments.misfit(arguments)) is not None:
            return SchemaMismatch(self.spec.name, misfit)
        return self._promise.bind(arguments)


def promised(
    tool: FunctionTool,
    *,
    recovery: RecoveryMode | str | Callable[..., Any] = RecoveryMode.OUTCOME_UNKNOWN,
    **more: Any,
) -> AgentTool:
    """Say what may be done about a call of this tool when its outcome is missing; by default nothing.

    Arguments that do not fit are answered without a dispatch.

    A reader that needs no context of its run is run again by recovery; what else has no outcome, its agent alone could
    run.

    Args:
        tool: as the agent has it.
        recovery: as `safepoint.contract` takes it.
        more: `contract_id`, `version`, `resource_key`, `key_valid_seconds`, `no_effect_errors`, `repeat_free`,
            `writes_workspace`, as `safepoint.contract` takes them.

    Raises:
        ToolDefinitionError: the declaration contradicts itself, or the tool's schema is none.
    """
    again = _again(tool) if recovery == RecoveryMode.REPLAY_SAFE and not _takes_context(tool) else None
    promise = contract(
        tool.name,
        recovery=recovery,
        description=tool.description,
        input_schema=tool.params_json_schema,
        carry_out=again,
        **more,
    )
    return AgentTool(promise, ToolArguments(tool))


def _takes_context(tool: FunctionTool) -> bool:
    try:
        hints = typing.get_type_hints(tool.__wrapped__)
    except (AttributeError, NameError):
        return True  # nothing is known of it
    kinds = [typing.get_origin(hint) or hint for hint in hints.values()]
    return any(isinstance(kind, type) and issubclass(kind, RunContextWrapper) for kind in kinds)


def _again(tool: FunctionTool) -> Callable[..., Any]:
    inner = copy.copy(tool)
    set_function_tool_failure_error_function(inner, None)

    async def run(**arguments: Any) -> Any:
        text = encode(arguments).decode()
        context = ToolContext(None, tool_name=tool.name, tool_call_id="recovery", tool_arguments=text)
        return await inner.on_invoke_tool(context, text)

    return run
