"""Calls a named function in this process, with the outcome that a supervised one would have."""

from __future__ import annotations

import importlib
import types
from functools import reduce

from ...domain import canonical
from ...domain.errors import RefusedWithoutEffect
from ...ports.supervised import FunctionCall, FunctionFailed, FunctionFailure, FunctionReturned


def call_function(call: FunctionCall) -> FunctionReturned | FunctionFailed:
    """Import, call and judge the result; never raises."""
    try:
        module: object = importlib.import_module(call.module)
        function = reduce(getattr, call.qualname.split("."), module)
        function = getattr(function, "__supervised__", function)
        if not callable(function):
            raise TypeError(f"{call.module}:{call.qualname} is not callable")
    except Exception as error:  # noqa: BLE001  (importing runs code of the user, which may raise anything)
        return _failed(FunctionFailure.NOT_IMPORTABLE, error)
    given: dict[str, object] = dict(call.arguments)
    if call.context_parameter is not None:
        given[call.context_parameter] = types.SimpleNamespace(**call.context)
    try:
        value = function(**given)
    except BaseException as error:  # noqa: BLE001  (SystemExit of a function is its outcome)
        return _failed(FunctionFailure.RAISED, error)
    try:
        return FunctionReturned(canonical.decode(canonical.encode(value)))
    except Exception as error:  # noqa: BLE001  (whatever the encoder says, the result cannot be kept)
        return _failed(FunctionFailure.RESULT_NOT_STRICT_JSON, error)


def _failed(failure: FunctionFailure, error: BaseException) -> FunctionFailed:
    classes = tuple(f"{kind.__module__}:{kind.__qualname__}" for kind in type(error).__mro__)
    refused = isinstance(error, RefusedWithoutEffect)
    return FunctionFailed(failure, classes, str(error), refused_without_effect=refused)
