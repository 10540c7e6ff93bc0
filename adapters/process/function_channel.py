"""The owner's side of `function_worker`: the command that runs a function, and what came back. SPEC section 15."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ...ports.supervised import CapturedOutput, Command, FunctionCall, FunctionFailed, FunctionFailure, FunctionReturned
from . import function_worker

_WORKER = str(Path(function_worker.__file__).resolve())


def worker_command(call: FunctionCall, python: str) -> Command:
    """The command that runs the call with the owner's import path.

    Raises:
        ValueError: the call is not JSON.
    """
    module, main_file = _importable_name(call.module)
    request = {
        "module": module,
        "main_file": main_file,
        "qualname": call.qualname,
        "arguments": dict(call.arguments),
        "context": dict(call.context),
        "context_parameter": call.context_parameter,
        "path": [str(Path(entry).absolute()) if entry else str(Path.cwd()) for entry in sys.path],
    }
    stdin = json.dumps(request, allow_nan=False).encode("ascii")
    # -P: the folder of the worker must not stand on the import path, where its neighbours would hide modules of the
    # user.
    return Command((python, "-P", _WORKER), cwd=call.cwd, environment=call.environment, stdin=stdin)


def read_outcome(result: CapturedOutput) -> FunctionReturned | FunctionFailed | None:
    """Decode what the worker wrote; None when it died before it had written all of it."""
    if result.truncated:
        message = f"the result has {result.total_bytes} bytes"
        return FunctionFailed(FunctionFailure.RESULT_TOO_LARGE, (), message, refused_without_effect=False)
    try:
        outcome = json.loads(result.data)
        if outcome["is"] == "returned":
            return FunctionReturned(outcome["value"])
        return FunctionFailed(
            FunctionFailure(outcome["failure"]),
            tuple(outcome["error_classes"]),
            outcome["message"],
            refused_without_effect=outcome["refused"],
        )
    except (ValueError, KeyError, TypeError):
        return None


def _importable_name(module: str) -> tuple[str, str | None]:
    """What `__main__` is called elsewhere: the module that `-m` named, else the script's file."""
    if module != "__main__":
        return module, None
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return spec.name, None
    file = getattr(main, "__file__", None)
    return module, None if file is None else os.path.realpath(file)
