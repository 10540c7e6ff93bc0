"""Whether a call's arguments fit its function tool, told before anything is dispatched. SPEC section 8."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.function_schema import FuncSchema, function_schema
from pydantic import ValidationError

from ...application.preflight import Refused, mismatch, not_strict
from ...domain.tool_arguments import NotStrictJson, parse_arguments
from ...domain.tool_results import sayable
from ..tools.json_schema import PLACES_MAX, JsonSchema


class ToolArguments:
    """What a function tool takes.

    A tool that the SDK made from a function is asked as the SDK asks it, by the same model of the function: a text that
    is a number is one, and what has a default may be left out, also where the schema is strict. Of any other tool the
    schema is all that is known.

    Args:
        tool: as the agent has it.

    Raises:
        ToolDefinitionError: its schema is none.
    """

    def __init__(self, tool: FunctionTool) -> None:
        self._schema = tool.params_json_schema
        function = _function_of(tool)
        self._refused: Callable[[Mapping[str, Any]], str | None] = (
            JsonSchema(tool.name, self._schema, whose="the tool's schema").misfit
            if function is None
            else partial(_refused_by, function)
        )

    def misfit(self, arguments: Mapping[str, Any]) -> str | None:
        """What does not fit, never a value; None where all fits.

        More than the tool itself would say: what a schema forbids is not left out silently.
        """
        closed = self._schema.get("additionalProperties") is False and "patternProperties" not in self._schema
        if closed and (forbidden := sorted(set(arguments) - set(self._schema.get("properties", ())))):
            return sayable(f"{', '.join(forbidden)}: the tool has no such argument")
        return self.refused(arguments)

    def refused(self, arguments: Mapping[str, Any]) -> str | None:
        """Why the tool itself would not begin; None where it would."""
        wrong = self._refused(arguments)
        return None if wrong is None else sayable(wrong)

    def refused_text(self, text: str) -> Refused | None:
        """The same of arguments as the SDK hands them on, with what our own preflight says of them."""
        try:
            arguments = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            arguments = None
        wrong = self.refused(arguments) if isinstance(arguments, dict) else "arguments: an object is expected"
        if wrong is None:
            return None
        read = parse_arguments(text)
        return not_strict(read) if isinstance(read, NotStrictJson) else mismatch(wrong)


def _function_of(tool: FunctionTool) -> FuncSchema | None:
    """How the SDK sees the function that it made the tool from; None where it did not, or cannot be asked."""
    try:
        function: Any = tool.__wrapped__
        plain = inspect.isroutine(function) or inspect.isclass(function)
        return function_schema(
            function if plain else function.__call__,
            name_override=tool.name,
            use_docstring_info=False,
            strict_json_schema=tool.strict_json_schema,
        )
    except Exception:  # noqa: BLE001 (no function, or a kind of it that only the SDK's decorator knows)
        return None


def _refused_by(function: FuncSchema, arguments: Mapping[str, Any]) -> str | None:
    try:
        function.to_call_args(function.params_pydantic_model.model_validate(arguments))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:PLACES_MAX]
        return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['type']}" for fault in faults)
    except Exception as error:  # noqa: BLE001 (a validator of the tool's own that fails: its function is not reached)
        return f"they cannot be checked: {type(error).__name__}"
    return None
