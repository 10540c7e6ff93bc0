"""What a declared function is inside the process that runs it alone. SPEC section 15."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...domain.errors import RefusedWithoutEffect
from ...domain.events.event import Json
from ...domain.identifiers import ExecutionIdentity, OperationId
from ...ports.tool_catalog import ToolContext
from ...ports.tool_functions import not_done
from .declaration import Declaration, declaration_of
from .parameters import Parameters

SUPERVISED_ATTRIBUTE = "__supervised__"
"""What the worker process calls in place of a function that has it."""
CONTEXT_PARAMETER = "safepoint context"
"""No parameter of a function can have this name."""


class SupervisedEntry:
    """Stands in for a declared function inside the worker process: makes typed arguments and context from JSON.

    What was declared is applied here, where the classes are the function's own: exceptions without effect become
    `RefusedWithoutEffect`, and the result is formatted, since only strict JSON leaves the process.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, **given: Any) -> Any:
        """Call the function."""
        context = _context_from(given.pop(CONTEXT_PARAMETER))
        declared = declaration_of(self._function)
        with _typed_refusals(declared):
            returned = Parameters(self._function).call(self._function, given, context)
        return _awaited(returned, declared) if hasattr(returned, "__await__") else _formatted(returned, declared)


class FormattingFailed:
    """Comes back in place of a result that could not be formatted; it is no JSON, which is what is then recorded."""


def context_json(context: ToolContext) -> dict[str, Json]:
    """Say what another process may know of the call."""
    return {
        "identity": list(context.identity),
        "operation_id": context.operation_id,
        "idempotency_key": context.idempotency_key,
        "workspace": str(context.workspace),
        "evidence": context.evidence,
        "redelivery": context.redelivery,
    }


def _context_from(given: Any) -> ToolContext:
    return ToolContext(
        identity=ExecutionIdentity(*given.identity),
        operation_id=OperationId(given.operation_id),
        idempotency_key=given.idempotency_key,
        workspace=Path(given.workspace),
        cancel=_Unconnected(),
        report=lambda _: None,
        failpoints=_Unconnected(),
        evidence=given.evidence,
        redelivery=given.redelivery,
    )


class _Unconnected:
    """What a process of its own has in place of signals from the owner: it is ended instead."""

    def is_set(self) -> bool:
        return False

    def hit(self, point: str) -> None:
        return


@contextlib.contextmanager
def _typed_refusals(declared: Declaration) -> Iterator[None]:
    try:
        yield
    except declared.no_effect_errors as error:
        raise RefusedWithoutEffect(str(error)) from error


async def _awaited(returned: Any, declared: Declaration) -> object:
    with _typed_refusals(declared):
        result = await returned
    return _formatted(result, declared)


def _formatted(returned: Any, declared: Declaration) -> object:
    if declared.format_result is None:
        if (what := not_done(returned)) is not None:
            raise TypeError(what)
        return returned
    try:
        return declared.format_result(returned)
    except Exception:  # noqa: BLE001 (whatever a formatter does, the effect has happened)
        traceback.print_exc()  # to standard error, which is captured
        return FormattingFailed()
