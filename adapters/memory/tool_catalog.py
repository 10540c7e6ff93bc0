"""Tools for tests: a name, typed parameters, and a function of arguments and context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...domain.events.event import Json
from ...domain.events.tool import RecordedContract, RecoveryMode
from ...domain.tool_digests import contract_digest, schema_digest
from ...ports.tool_catalog import (
    Binding,
    BoundCall,
    Implementation,
    SchemaMismatch,
    ToolCatalog,
    ToolSpec,
    UnknownTool,
)

_JSON_NAMES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}


@dataclass(frozen=True, kw_only=True)
class MemoryTool:
    """One tool; what is not given is as for an undeclared function.

    Attributes:
        parameters: name -> the exact Python type of its JSON value; all are required.
    """

    name: str
    implementation: Implementation
    parameters: Mapping[str, type] = field(default_factory=dict)
    mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN
    resource_key: str | None = None
    timeout_seconds: float | None = None
    concurrency_limit: int | None = None
    key_valid_seconds: int | None = None
    repeat_free: bool = False
    writes_workspace: bool = True
    no_effect_errors: tuple[type[BaseException], ...] = ()

    @property
    def spec(self) -> ToolSpec:
        """As the model is offered it."""
        schema: dict[str, Json] = {
            "type": "object",
            "properties": {name: {"type": _JSON_NAMES[kind]} for name, kind in self.parameters.items()},
            "required": list(self.parameters),
            "additionalProperties": False,
        }
        of_schema = schema_digest(schema)
        contract: dict[str, Json] = {"recovery": self.mode.value, "key_valid_seconds": self.key_valid_seconds}
        of_contract = contract_digest({**contract, "input_schema": of_schema})
        return ToolSpec(self.name, self.name, schema, of_schema, of_contract)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments."""
        if not isinstance(arguments, dict):
            return SchemaMismatch(self.name, "arguments: an object was expected")
        odd = {name for name in {*arguments, *self.parameters} if not self._fits(name, arguments)}
        if odd:
            return SchemaMismatch(self.name, f"do not fit: {', '.join(sorted(odd))}")
        return BoundCall(
            tool_name=self.name,
            contract=RecordedContract(
                mode=self.mode,
                contract_id=self.name,
                version=1,
                digest=self.spec.contract_digest,
                key_valid_seconds=self.key_valid_seconds,
                repeat_free=self.repeat_free,
            ),
            implementation=self.implementation,
            resource_key=self.resource_key,
            timeout_seconds=self.timeout_seconds,
            concurrency_limit=self.concurrency_limit,
            writes_workspace=self.writes_workspace,
            no_effect_errors=self.no_effect_errors,
        )

    def _fits(self, name: str, arguments: Mapping[str, Json]) -> bool:
        return name in arguments and type(arguments[name]) is self.parameters.get(name)


class MemoryCatalog(ToolCatalog):
    """Tools by name, in the given order."""

    def __init__(self, tools: Sequence[MemoryTool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def tools(self) -> Sequence[ToolSpec]:
        """All tools."""
        return [tool.spec for tool in self._tools.values()]

    def bind(self, name: str, arguments: Json) -> Binding:
        """Find the tool and check the arguments."""
        tool = self._tools.get(name)
        return UnknownTool(name) if tool is None else tool.bind(arguments)
