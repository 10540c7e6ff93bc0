"""The catalog of plain Python functions and of tools that bring their own binding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from ...domain.events.event import Json, ToolName
from ...ports.tool_catalog import Binding, BoundCall, SchemaMismatch, ToolCatalog, ToolSpec, UnknownTool
from .declaration import ToolDefinitionError
from .function_tool import FunctionTool

_NAME: TypeAdapter[str] = TypeAdapter(ToolName)


@runtime_checkable
class Tool(Protocol):
    """One tool of a catalog."""

    @property
    def spec(self) -> ToolSpec:
        """As the model is offered it."""

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments; pure."""


class FunctionCatalog(ToolCatalog):
    """Tools by name.

    Args:
        tools: functions, declared with `tool` or not (then they promise nothing), and objects that are a `Tool`.

    Raises:
        ToolDefinitionError: one of them cannot be a tool, or two have one name.
    """

    def __init__(self, tools: Iterable[Callable[..., Any] | Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            if not isinstance(given, Tool) and not callable(given):
                raise ToolDefinitionError(
                    repr(given), "it is no function: of one that a loop has, give a `contract(name)`"
                )
            tool = given if isinstance(given, Tool) else FunctionTool(given)
            name = tool.spec.name
            try:
                _NAME.validate_python(name)
            except ValidationError as error:
                raise ToolDefinitionError(
                    repr(name), "its name is empty, too long or holds control characters"
                ) from error
            if name in self._tools:
                raise ToolDefinitionError(name, "another tool has this name")
            self._tools[name] = tool

    def tools(self) -> Sequence[ToolSpec]:
        """All tools in the order in which they were given."""
        return [tool.spec for tool in self._tools.values()]

    def bind(self, name: str, arguments: Json) -> Binding:
        """Find the tool and check the arguments."""
        tool = self._tools.get(name)
        return UnknownTool(name) if tool is None else tool.bind(arguments)
