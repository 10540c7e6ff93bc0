"""A plain Python function as a tool of the catalog. SPEC section 8."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import (
    Arguments,
    AsyncCall,
    BoundCall,
    Implementation,
    SchemaMismatch,
    SyncCall,
    ToolContext,
)
from ...ports.tool_functions import is_async, is_generator
from .declaration import NO_GENERATOR, ToolDefinitionError, declaration_of
from .parameters import MisfitArguments, Parameters
from .promise import bound_call, tool_spec
from .supervised_function import check_importable, supervised_call


class FunctionTool:
    """Binds calls of one function.

    Raises:
        ToolDefinitionError: it cannot be a tool as it is declared.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._declared = declaration_of(function)
        if is_generator(function) and self._declared.format_result is None:
            raise ToolDefinitionError(function.__qualname__, NO_GENERATOR)
        self._parameters = Parameters(function)
        self._is_async = is_async(function)
        self.spec = tool_spec(
            self._declared.name or function.__name__,
            self._declared.description or inspect.getdoc(function) or "",
            self._parameters.schema,
            self._declared,
        )
        if self._may_be_supervised():
            check_importable(function)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments and resolve the contract for them."""
        try:
            typed = self._parameters.typed(arguments)
        except MisfitArguments as misfit:
            return SchemaMismatch(self.spec.name, str(misfit))
        try:
            return self._bound(typed)
        except Exception as error:  # noqa: BLE001 (a contract that cannot be told promises nothing: refused)
            return SchemaMismatch(self.spec.name, f"its contract cannot be told for them: {type(error).__name__}")

    def _bound(self, typed: Mapping[str, Any]) -> BoundCall:
        return bound_call(self.spec, self._declared, typed, self._implementation)

    def _implementation(self, mode: RecoveryMode) -> Implementation:
        if self._is_supervised(mode):
            return supervised_call(self._function, mode)
        return AsyncCall(self._run_async) if self._is_async else SyncCall(self._run)

    def _is_supervised(self, mode: RecoveryMode) -> bool:
        if self._declared.supervised is not None:
            return self._declared.supervised
        has_timeout = self._declared.timeout_seconds is not None
        return has_timeout and not self._is_async and mode is not RecoveryMode.REPLAY_SAFE

    def _may_be_supervised(self) -> bool:
        recovery = self._declared.recovery
        return self._is_supervised(RecoveryMode.OUTCOME_UNKNOWN if callable(recovery) else RecoveryMode(recovery))

    def _run(self, arguments: Arguments, context: ToolContext) -> object:
        return self._parameters.call(self._function, arguments, context)

    async def _run_async(self, arguments: Arguments, context: ToolContext) -> object:
        awaitable: Awaitable[object] = self._parameters.call(self._function, arguments, context)
        return await awaitable
