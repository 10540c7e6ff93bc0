"""What is promised of a tool, as the model's offer names it and as T1 records it for one call. SPEC section 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ...domain.events.event import Json
from ...domain.events.tool import RecordedContract, RecoveryMode
from ...domain.tool_digests import contract_digest, schema_digest
from ...ports.tool_catalog import BoundCall, Implementation, ToolSpec
from .declaration import Declaration, ToolDefinitionError

BY_ARGUMENTS: Final = "by arguments"
_NO_PROMISE: Final = Declaration()
_PROMISES: Final = (
    "resource_key",
    "timeout_seconds",
    "concurrency_limit",
    "key_valid_seconds",
    "no_effect_errors",
    "repeat_free",
    "supervised",
    "writes_workspace",
    "child_run",
)


def tool_spec(name: str, description: str, schema: Mapping[str, Json], declared: Declaration) -> ToolSpec:
    """A tool as the model is offered it."""
    return spec_of(name, description, schema, _contract(name, declared))


def spec_of(name: str, description: str, schema: Mapping[str, Json], contract: Mapping[str, Json]) -> ToolSpec:
    """The same of a tool that says itself, by words that never change, what it promises."""
    of_schema = schema_digest(schema)
    return ToolSpec(
        name=name,
        description=description,
        input_schema=schema,
        schema_digest=of_schema,
        contract_digest=contract_digest({**contract, "input_schema": of_schema}),
    )


def bound_call(
    spec: ToolSpec,
    declared: Declaration,
    typed: Mapping[str, Any],
    implementation: Callable[[RecoveryMode], Implementation],
) -> BoundCall:
    """One call with the contract that holds for its arguments.

    Args:
        implementation: chosen by the mode.

    Raises:
        ToolDefinitionError: what is declared does not fit the arguments' mode.
        Exception: a function of the arguments failed.
    """
    mode = RecoveryMode(_resolved(declared.recovery, typed))
    idempotent = mode is RecoveryMode.IDEMPOTENT
    if idempotent and declared.key_valid_seconds is None:
        raise ToolDefinitionError(spec.name, "idempotent needs key_valid_seconds")
    writes = _resolved(declared.writes_workspace, typed)
    evidence = declared.evidence
    return BoundCall(
        tool_name=spec.name,
        contract=RecordedContract(
            mode=mode,
            contract_id=declared.contract_id or spec.name,
            version=declared.version,
            digest=spec.contract_digest,
            key_valid_seconds=declared.key_valid_seconds if idempotent else None,
            repeat_free=declared.repeat_free,
        ),
        implementation=implementation(mode),
        resource_key=_resolved(declared.resource_key, typed),
        timeout_seconds=declared.timeout_seconds,
        concurrency_limit=declared.concurrency_limit,
        writes_workspace=mode is not RecoveryMode.REPLAY_SAFE if writes is None else bool(writes),
        no_effect_errors=declared.no_effect_errors,
        evidence_of=None if evidence is None else partial(evidence, typed),
        format=declared.format_result,
        child_run=declared.child_run,
    )


def _resolved(declared: Any, typed: Mapping[str, Any]) -> Any:
    return declared(typed) if callable(declared) else declared


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
