"""A plain Python function as a tool of the catalog. SPEC section 8."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ...domain.events.event import Json
from ...domain.events.tool import RecordedContract, RecoveryMode
from ...domain.tool_digests import contract_digest, schema_digest
from ...ports.tool_catalog import (
    Arguments,
    AsyncCall,
    BoundCall,
    Implementation,
    SchemaMismatch,
    SyncCall,
    ToolContext,
    ToolSpec,
    Workspace,
)
from .declaration import Declaration, ToolDefinitionError, declaration_of
from .parameters import MisfitArguments, Parameters
from .supervised_function import check_importable, supervised_call

BY_ARGUMENTS = "by arguments"
_NO_PROMISE = Declaration()
_PROMISES = (
    "resource_key",
    "timeout_seconds",
    "concurrency_limit",
    "key_valid_seconds",
    "no_effect_errors",
    "repeat_free",
    "supervised",
    "writes_workspace",
)


class FunctionTool:
    """Binds calls of one function.

    Raises:
        ToolDefinitionError: it cannot be a tool as it is declared.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._declared = declaration_of(function)
        self._parameters = Parameters(function)
        self._is_async = inspect.iscoroutinefunction(function)
        self.spec = _spec(function, self._declared, self._parameters)
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
        declared = self._declared
        mode = RecoveryMode(_resolved(declared.recovery, typed))
        idempotent = mode is RecoveryMode.IDEMPOTENT
        if idempotent and declared.key_valid_seconds is None:
            raise ToolDefinitionError(self.spec.name, "idempotent needs key_valid_seconds")
        writes = _resolved(declared.writes_workspace, typed)
        evidence = declared.evidence
        return BoundCall(
            tool_name=self.spec.name,
            contract=RecordedContract(
                mode=mode,
                contract_id=declared.contract_id or self.spec.name,
                version=declared.version,
                digest=self.spec.contract_digest,
                key_valid_seconds=declared.key_valid_seconds if idempotent else None,
                repeat_free=declared.repeat_free,
            ),
            implementation=self._implementation(mode),
            resource_key=_resolved(declared.resource_key, typed),
            timeout_seconds=declared.timeout_seconds,
            concurrency_limit=declared.concurrency_limit,
            writes_workspace=mode is not RecoveryMode.REPLAY_SAFE if writes is None else bool(writes),
            no_effect_errors=declared.no_effect_errors,
            evidence_of=None if evidence is None else partial(_evidence, evidence, typed),
            format=declared.format_result,
        )

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


def _resolved(declared: Any, typed: Mapping[str, Any]) -> Any:
    return declared(typed) if callable(declared) else declared


def _evidence(
    compute: Callable[[Mapping[str, Any], Workspace], Json], typed: Mapping[str, Any], workspace: Workspace
) -> Json:
    return compute(typed, workspace)


def _spec(function: Callable[..., Any], declared: Declaration, parameters: Parameters) -> ToolSpec:
    name = declared.name or function.__name__
    of_schema = schema_digest(parameters.schema)
    return ToolSpec(
        name=name,
        description=declared.description or inspect.getdoc(function) or "",
        input_schema=parameters.schema,
        schema_digest=of_schema,
        contract_digest=contract_digest({**_contract(name, declared), "input_schema": of_schema}),
    )


def _contract(name: str, declared: Declaration) -> dict[str, Json]:
    """Say what is promised; what is left at its default stays unsaid, so that later options change no old digest."""
    contract: dict[str, Json] = {
        promise: _shown(getattr(declared, promise))
        for promise in _PROMISES
        if getattr(declared, promise) != getattr(_NO_PROMISE, promise)
    }
    identity: dict[str, Json] = {"contract_id": declared.contract_id or name, "version": declared.version}
    return {**contract, **identity, "recovery": _shown(declared.recovery)}


def _shown(declared: Any) -> Json:
    """Show what depends on the arguments as that: what it answers is named by the contract's version."""
    match declared:
        case RecoveryMode():
            return declared.value
        case tuple():
            return [*sorted(error.__name__ for error in declared)]
        case _ if callable(declared):
            return BY_ARGUMENTS
    known: Json = declared
    return known
