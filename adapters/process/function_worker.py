"""Runs one Python function: reads the call as JSON from standard input, writes the outcome as JSON to descriptor 3.

What the function prints goes where prints go and cannot mix with its result. Standard library only: the function's
own imports are what this process pays for. SPEC section 15.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import sys
import traceback
import types
from collections.abc import Callable

RESULT_DESCRIPTOR = 3
MESSAGE_CHARACTERS_MAX = 8192
REFUSED = "safepoint.domain.errors:RefusedWithoutEffect"


def main() -> None:
    """Run the call and end with exit code 0 when it returned a result that could be kept, else 1."""
    os.set_inheritable(RESULT_DESCRIPTOR, False)  # what the function starts must not hold the channel
    request = json.loads(sys.stdin.buffer.read())
    sys.path[:] = request["path"]
    outcome = _run(request)
    answer = json.dumps(outcome, allow_nan=False).encode("ascii")
    with os.fdopen(RESULT_DESCRIPTOR, "wb") as channel:
        channel.write(answer)
    sys.exit(0 if outcome["is"] == "returned" else 1)


def _run(request: dict[str, object]) -> dict[str, object]:
    try:
        function = _find(request)
    except BaseException as error:  # noqa: BLE001  (importing runs code of the user, which may raise anything)
        return _failed("not_importable", error)
    given = dict(_mapping(request["arguments"]))
    if request["context_parameter"] is not None:
        given[str(request["context_parameter"])] = types.SimpleNamespace(**_mapping(request["context"]))
    try:
        result = function(**given)
        if hasattr(result, "__await__"):
            result = _await(result)
    except BaseException as error:  # noqa: BLE001  (SystemExit of a function is its outcome, not ours)
        return _failed("raised", error)
    try:
        check_strict_json(result)
    except (ValueError, RecursionError) as error:
        return _failed("result_not_strict_json", error)
    return {"is": "returned", "value": result}


def _find(request: dict[str, object]) -> Callable[..., object]:
    name, main_file = str(request["module"]), request["main_file"]
    module = _load_main(str(main_file)) if name == "__main__" and main_file else importlib.import_module(name)
    found: object = module
    for part in str(request["qualname"]).split("."):
        found = getattr(found, part)
    found = getattr(found, "__supervised__", found)
    if not callable(found):
        raise TypeError(f"{name}:{request['qualname']} is not callable")
    return found


def _load_main(path: str) -> types.ModuleType:
    """Load the owner's script under another name, so that what it does only as a script is not done again."""
    spec = importlib.util.spec_from_file_location("__safepoint_main__", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["__main__"] = sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _await(awaitable: object) -> object:
    import asyncio

    async def awaited() -> object:
        return await awaitable  # type: ignore[misc]

    return asyncio.run(awaited())


def _failed(failure: str, error: BaseException) -> dict[str, object]:
    traceback.print_exception(error)  # to standard error, which is captured
    classes = [f"{kind.__module__}:{kind.__qualname__}" for kind in type(error).__mro__]
    try:
        message = str(error)[:MESSAGE_CHARACTERS_MAX]
    except Exception:  # noqa: BLE001  (an exception that cannot be printed)
        message = ""
    return {
        "is": "failed",
        "failure": failure,
        "error_classes": classes,
        "message": message,
        "refused": REFUSED in classes,
    }


def check_strict_json(value: object) -> None:
    """Refuse what JSON cannot hold as it is: nothing is coerced on the way to the owner. SPEC section 6.

    Raises:
        ValueError: a type that JSON does not have, a key that is not text, NaN or an infinity.
    """
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not JSON")
    elif isinstance(value, list | tuple):
        for item in value:
            check_strict_json(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r:.80} is not text")
            check_strict_json(item)
    else:
        raise ValueError(f"{type(value).__name__} is not a JSON type")


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


if __name__ == "__main__":
    main()
