"""A function that runs in a process of its own, and how its end is read. SPEC sections 8 and 15."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ...domain import tool_results
from ...domain.events.tool import Effect, RecoveryMode
from ...domain.tool_results import PreparedResult
from ...ports.supervised import FunctionCall, FunctionFailed, FunctionFailure, FunctionReturned, SupervisedExit
from ...ports.tool_catalog import Arguments, Settled, SupervisedCall, ToolContext
from .declaration import ToolDefinitionError
from .left_running import left_running
from .supervised_entry import CONTEXT_PARAMETER, context_json


def check_importable(function: Callable[..., Any]) -> None:
    """Make sure that another process can find the function by name.

    Raises:
        ToolDefinitionError: it cannot, such as a lambda or a function inside a function.
    """
    name = getattr(function, "__qualname__", repr(function))
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function:
        detail = (
            f"it runs in a process of its own, which cannot find it as {getattr(function, '__module__', None)}:{name};"
            " define it at the top of a module, or declare supervised=False"
        )
        raise ToolDefinitionError(name, detail)


def supervised_call(function: Callable[..., Any], mode: RecoveryMode) -> SupervisedCall:
    """Make the implementation of one call."""

    def work(arguments: Arguments, context: ToolContext) -> FunctionCall:
        return FunctionCall(
            module=function.__module__,
            qualname=function.__qualname__,
            arguments=dict(arguments),
            context=context_json(context),
            context_parameter=CONTEXT_PARAMETER,
        )

    def settle(end: SupervisedExit, context: ToolContext) -> Settled:
        return Settled(_result(end, mode), left_running(end))

    return SupervisedCall(work, settle)


def _result(end: SupervisedExit, mode: RecoveryMode) -> PreparedResult:
    has_effect = mode is not RecoveryMode.REPLAY_SAFE
    done, unknown = (Effect.DONE, Effect.UNKNOWN) if has_effect else (Effect.NONE, Effect.NONE)
    match end.outcome:
        case FunctionReturned(value=value):
            return tool_results.prepare_result(value, effect=done)
        case FunctionFailed(failure=FunctionFailure.RESULT_NOT_STRICT_JSON, message=message):
            return tool_results.unkept_result(message, effect=done)
        case FunctionFailed(failure=FunctionFailure.RESULT_TOO_LARGE):
            return tool_results.oversized_result(effect=done)
        case FunctionFailed(failure=FunctionFailure.NOT_IMPORTABLE, message=message):
            return tool_results.refused(f"it could not be loaded in a process of its own: {message}")
        case FunctionFailed(refused_without_effect=True, message=message):
            return tool_results.refused(message)
        case FunctionFailed(error_classes=classes, message=message):
            name = classes[0].rpartition(":")[2] if classes else "Exception"
            return tool_results.raised(name, message, effect=unknown)
        case None:
            how = f"signal {end.signal}" if end.signal is not None else f"exit code {end.exit_code}"
            return tool_results.raised("ProcessDied", f"its process ended with {how}", effect=unknown)
