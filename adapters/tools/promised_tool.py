"""A tool of which only the promise is known here: a loop of others carries it out. SPEC sections 8 and 17."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...domain.errors import RefusedWithoutEffect
from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import (
    Arguments,
    AsyncCall,
    BoundCall,
    Implementation,
    SchemaMismatch,
    ToolContext,
)
from ...ports.tool_functions import calling, is_generator, misfit
from .declaration import NO_GENERATOR, ByArguments, Declaration, ToolDefinitionError, checked_declaration
from .promise import bound_call, tool_spec

ANY_OBJECT: Final[Mapping[str, Json]] = {"type": "object"}


class PromisedTool:
    """Binds calls of a tool that is carried out elsewhere; that its arguments fit is checked there, too.

    Args:
        carry_out: what is called with the arguments where it has to be run here; None where that is not possible.
    """

    def __init__(
        self,
        name: str,
        description: str,
        schema: Mapping[str, Json],
        declared: Declaration,
        carry_out: Callable[..., Any] | None,
    ) -> None:
        self._declared = declared
        self._carry_out = carry_out
        self.spec = tool_spec(name, description, schema, declared)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Resolve the contract for these arguments, an object."""
        if not isinstance(arguments, dict):
            return SchemaMismatch(self.spec.name, "arguments: an object is expected")
        try:
            bound = bound_call(self.spec, self._declared, arguments, lambda mode: self._implementation(arguments))
        except Exception as error:  # noqa: BLE001 (a contract that cannot be told promises nothing: refused)
            return SchemaMismatch(self.spec.name, f"its contract cannot be told for them: {type(error).__name__}")
        return replace(bound, elsewhere=self.elsewhere)

    @property
    def elsewhere(self) -> bool:
        """Whether only its loop can carry it out."""
        return self._carry_out is None

    def _implementation(self, arguments: Arguments) -> Implementation:
        if self._carry_out is None:
            return AsyncCall(_not_here)
        wrong = misfit(self._carry_out, arguments)
        return calling(self._carry_out) if wrong is None else AsyncCall(partial(_misfits, wrong))


async def _misfits(wrong: str, arguments: Arguments, context: ToolContext) -> object:
    raise RefusedWithoutEffect(f"carry_out cannot be called with these arguments: {wrong}")


async def _not_here(arguments: Arguments, context: ToolContext) -> object:
    raise RefusedWithoutEffect("this tool can only be carried out by the loop that it belongs to")


def contract(
    name: str,
    *,
    recovery: RecoveryMode | str | ByArguments[RecoveryMode | str] = RecoveryMode.OUTCOME_UNKNOWN,
    description: str = "",
    input_schema: Mapping[str, Json] = ANY_OBJECT,
    contract_id: str | None = None,
    version: int = 1,
    resource_key: str | ByArguments[str | None] | None = None,
    key_valid_seconds: int | None = None,
    no_effect_errors: tuple[type[BaseException], ...] = (),
    repeat_free: bool = False,
    writes_workspace: bool | ByArguments[bool] | None = None,
    child_run: bool = False,
    carry_out: Callable[..., Any] | None = None,
) -> PromisedTool:
    """Declare what the owner of a tool promises, where a loop of its own carries the tool out.

    >>> contract("look_up", recovery="replay_safe").spec.name
    'look_up'

    Args:
        name: as the model calls it; 1 to 200 characters without control characters.
        recovery: what recovery may do when the outcome of a call is missing, or a pure function of the arguments that
            names it; a tool of which nothing is said promises nothing.
        description: as the model sees it.
        input_schema: JSON schema of the arguments. Another schema is another tool: a resume is parked by it.
        contract_id: under which reconcilers know it; by default the name.
        version: of the promise, at least 1.
        resource_key: what the call works on, or a pure function of the arguments that names it.
        key_valid_seconds: how long the same idempotency key means the same effect; needed by `idempotent`, for no other
            mode.
        no_effect_errors: exceptions that mean that nothing happened.
        repeat_free: repeating it is always fine.
        writes_workspace: whether it may change files of the workspace; by default yes, unless it is replay-safe.
        child_run: it does nothing but start a run of its own in this store, by `Session.run` or `Session.record` with
            `parent=`; a `reattach` tool. The id of that run is recorded before the call starts, so that recovery finds
            it.
        carry_out: what is called with the arguments, by name, where recovery has to run the tool itself: to read again,
            or to deliver an idempotent call again, with the recorded key. It gets that from a first parameter that is
            declared as a `ToolContext`, or from `current_call`. None where only its loop can; recovery then leaves it
            alone. Where it is given, our own loop can carry the tool out, too.

    Raises:
        ToolDefinitionError: the declaration contradicts itself.
    """
    declared: dict[str, Any] = {
        "recovery": recovery,
        "contract_id": contract_id,
        "version": version,
        "resource_key": resource_key,
        "key_valid_seconds": key_valid_seconds,
        "no_effect_errors": no_effect_errors,
        "repeat_free": repeat_free,
        "writes_workspace": writes_workspace,
        "child_run": child_run,
    }
    if not name:
        raise ToolDefinitionError(repr(name), "its name is empty")
    if carry_out is not None and not callable(carry_out):
        raise ToolDefinitionError(name, f"carry_out is a function, not a {type(carry_out).__name__}")
    if is_generator(carry_out):
        raise ToolDefinitionError(name, NO_GENERATOR)
    return PromisedTool(name, description, input_schema, checked_declaration(name, declared), carry_out)
