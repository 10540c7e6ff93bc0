"""Functions as implementations of calls: what a signature says before anything runs, and a value afterwards."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from .tool_call import Arguments, AsyncCall, SyncCall, ToolContext


def is_async(function: object) -> bool:
    """Whether calling it gives something to await, as far as that can be told; an object with one, too."""
    return _is(inspect.iscoroutinefunction, function)


def is_generator(function: object) -> bool:
    """Whether calling it runs nothing of it, as far as that can be told: a generator function, async or not."""
    return _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function)


def _is(kind: Callable[[object], bool], function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return kind(function) or kind(getattr(type(function), "__call__", None))  # noqa: B004 (it is what is called)


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether its first parameter is declared as a `ToolContext`: it then gets the call's before the arguments."""
    try:
        parameters = [*inspect.signature(function, eval_str=True).parameters.values()]
    except Exception:  # noqa: BLE001 (a signature or an annotation that cannot be read declares nothing)
        return False
    return bool(parameters) and parameters[0].annotation is ToolContext


def misfit(function: Callable[..., Any], arguments: Arguments) -> str | None:
    """Why the function cannot be called with these arguments by name, None where it can, or where nobody knows."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*([None] if takes_context(function) else []), **arguments)
    except TypeError as error:
        return str(error)
    return None


def calling(function: Callable[..., Any]) -> SyncCall | AsyncCall:
    """Carry a call out by a function that takes the arguments by name, and the context first where it declares one.

    A synchronous one runs in a thread.
    """
    first = takes_context(function)

    def run(arguments: Arguments, context: ToolContext) -> object:
        return function(context, **arguments) if first else function(**arguments)

    async def run_async(arguments: Arguments, context: ToolContext) -> object:
        awaitable: Awaitable[object] = function(context, **arguments) if first else function(**arguments)
        return await awaitable

    return AsyncCall(run_async) if is_async(function) else SyncCall(run)


def not_done(value: object) -> str | None:
    """Why a function that returned this may have done nothing yet, None where it returned a value.

    What was never begun is closed: Python would complain about it in some other place.
    """
    if not (inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)):
        return None
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()
    return f"it returned a {type(value).__name__}, and nobody ran it to its end"
