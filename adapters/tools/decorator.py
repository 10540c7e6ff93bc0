"""How a plain Python function is declared as a tool. SPEC section 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import Workspace
from .declaration import ATTRIBUTE, ByArguments, checked_declaration
from .supervised_entry import SUPERVISED_ATTRIBUTE, SupervisedEntry

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@overload
def tool(function: FunctionT, /) -> FunctionT: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    recovery: RecoveryMode | str | ByArguments[RecoveryMode | str] = RecoveryMode.OUTCOME_UNKNOWN,
    contract_id: str | None = None,
    version: int = 1,
    resource_key: str | ByArguments[str | None] | None = None,
    timeout_seconds: float | None = None,
    concurrency_limit: int | None = None,
    key_valid_seconds: int | None = None,
    no_effect_errors: tuple[type[BaseException], ...] = (),
    repeat_free: bool = False,
    supervised: bool | None = None,
    writes_workspace: bool | ByArguments[bool] | None = None,
    child_run: bool = False,
    evidence: Callable[[Mapping[str, Any], Workspace], Json] | None = None,
    format_result: Callable[[Any], object] | None = None,
) -> Callable[[FunctionT], FunctionT]: ...


def tool(function: FunctionT | None = None, /, **declared: Any) -> FunctionT | Callable[[FunctionT], FunctionT]:
    """Declare a function as a tool and return it unchanged: it can still be called as before.

    Its arguments must be typed; a first parameter of type `ToolContext` is filled in by Safepoint and not shown to the
    model.

    Args:
        function: the function, where nothing is declared beside it.
        name: as the model sees it; by default the function's name.
        description: as the model sees it; by default the function's docstring.
        recovery: the recovery mode, or a pure function of the arguments that names it.
        contract_id: under which reconcilers know it; by default the name.
        version: of the promise, at least 1; raise it when a function of the arguments changes what it answers.
        resource_key: calls that share a key run in call order; those without one wait for all that are not replay-safe.
        timeout_seconds: more than 0; a synchronous function with one runs supervised, unless it is replay-safe.
        concurrency_limit: how many calls may run at once, at least 1.
        key_valid_seconds: how long the same idempotency key means the same effect; needed by `idempotent`, for no other
            mode.
        no_effect_errors: exceptions that mean that nothing happened.
        repeat_free: repeating it is always fine, such as for a build.
        supervised: True to run it in a process of its own, False never to.
        writes_workspace: whether it may change files of the workspace; by default yes, unless it is replay-safe.
        child_run: it does nothing but start a run of its own in this store, by `Session.run` or `Session.record` with
            `parent=`; a `reattach` tool. The id of that run is recorded before the call starts, so that recovery finds
            it.
        evidence: computes before T1 what recovery compares with later, from the arguments and the workspace; the
            function finds it again as `context.evidence`.
        format_result: makes strict JSON of what the function returns.

    Raises:
        ToolDefinitionError: the declaration contradicts itself.
    """

    def declare(declared_function: FunctionT) -> FunctionT:
        declaration = checked_declaration(declared_function, declared)
        setattr(declared_function, ATTRIBUTE, declaration)
        setattr(declared_function, SUPERVISED_ATTRIBUTE, SupervisedEntry(declared_function))
        return declared_function

    return declare if function is None else declare(function)
