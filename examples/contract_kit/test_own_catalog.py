"""A tool catalog of one's own, over a table of tools that a team has, and the proof that it keeps its contract.

python -m pytest examples/contract_kit/test_own_catalog.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pytest

from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import RecordedContract, RecoveryMode
from safepoint.domain.tool_digests import contract_digest, schema_digest
from safepoint.ports.contract_kit.tool_catalog import ExampleCall, ToolCatalogContract
from safepoint.ports.tool_catalog import (
    Binding,
    BoundCall,
    SchemaMismatch,
    ToolCatalog,
    ToolSpec,
    UnknownTool,
    calling,
)


@dataclass(frozen=True)
class Entry:
    """A row of the team's table: a function whose parameters are all texts, and whether it only reads."""

    function: Callable[..., object]
    parameters: tuple[str, ...]
    only_reads: bool

    @property
    def name(self) -> str:
        """What the model calls."""
        return self.function.__name__


class TableOfTools(ToolCatalog):
    """What only reads may run again; of everything else nobody knows what a second call would do."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def tools(self) -> Sequence[ToolSpec]:
        """See `ToolCatalog`."""
        return [self._spec(entry) for entry in self._entries.values()]

    def bind(self, name: str, arguments: Json) -> Binding:
        """See `ToolCatalog`."""
        entry = self._entries.get(name)
        if entry is None:
            return UnknownTool(name)
        if not isinstance(arguments, dict) or set(arguments) != set(entry.parameters):
            return SchemaMismatch(name, f"exactly these are expected: {', '.join(entry.parameters)}")
        if odd := [parameter for parameter, value in arguments.items() if not isinstance(value, str)]:
            return SchemaMismatch(name, f"no texts: {', '.join(odd)}")  # names, never values
        contract = RecordedContract(
            mode=self._mode(entry), contract_id=name, version=1, digest=self._spec(entry).contract_digest
        )
        return BoundCall(tool_name=name, contract=contract, implementation=calling(entry.function))

    def _spec(self, entry: Entry) -> ToolSpec:
        schema: dict[str, Json] = {
            "type": "object",
            "properties": {parameter: {"type": "string"} for parameter in entry.parameters},
            "required": list(entry.parameters),
            "additionalProperties": False,
        }
        promised: dict[str, Json] = {"recovery": self._mode(entry).value, "input_schema": schema_digest(schema)}
        description = entry.function.__doc__ or ""
        return ToolSpec(entry.name, description, schema, schema_digest(schema), contract_digest(promised))

    def _mode(self, entry: Entry) -> RecoveryMode:
        return RecoveryMode.REPLAY_SAFE if entry.only_reads else RecoveryMode.OUTCOME_UNKNOWN


def look_up(customer: str) -> str:
    """Look a customer up."""
    return f"{customer} is known"


def send_letter(customer: str, text: str) -> None:
    """Send a letter."""


TABLE = [Entry(look_up, ("customer",), only_reads=True), Entry(send_letter, ("customer", "text"), only_reads=False)]


class TestTableOfTools(ToolCatalogContract):
    """The contract of the port, on this implementation."""

    @pytest.fixture
    def catalog(self) -> ToolCatalog:
        """The implementation, with at least two tools."""
        return TableOfTools(TABLE)

    @pytest.fixture
    def reordered(self) -> ToolCatalog:
        """The same tools, given in another order."""
        return TableOfTools(reversed(TABLE))

    @pytest.fixture(params=["look_up", "send_letter"])
    def example(self, request: pytest.FixtureRequest) -> ExampleCall:
        """Calls of one of its tools."""
        if request.param == "look_up":
            return ExampleCall("look_up", {"customer": "7"}, ({}, {"customer": 7}, {"customer": None}))
        return ExampleCall("send_letter", {"customer": "7", "text": ""}, ({"customer": "7"}, {"text": "Hello."}))
