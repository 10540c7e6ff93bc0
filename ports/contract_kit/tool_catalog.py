"""The contract of `ToolCatalog`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ..tool_catalog import Binding, BoundCall, SchemaMismatch, ToolCatalog, UnknownTool

DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ExampleCall:
    """A tool that takes an object with at least one member, and calls of it.

    Attributes:
        fitting: arguments that fit its schema.
        misfits: arguments that do not.
    """

    tool_name: str
    fitting: dict[str, Json]
    misfits: tuple[Json, ...]


def bound(binding: Binding) -> BoundCall:
    """The same, where anything else fails the test."""
    assert isinstance(binding, BoundCall), binding
    return binding


class ToolCatalogContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def catalog(self) -> ToolCatalog:
        """The implementation, with at least two tools."""
        pytest.fail("override the fixture `catalog`")

    @pytest.fixture
    def reordered(self) -> ToolCatalog:
        """The same tools, given in another order."""
        pytest.fail("override the fixture `reordered`")

    @pytest.fixture
    def example(self) -> ExampleCall:
        """Calls of one of its tools."""
        pytest.fail("override the fixture `example`")

    def test_no_name_stands_twice_and_every_digest_is_one(self, catalog: ToolCatalog) -> None:
        specs = catalog.tools()
        assert len({spec.name for spec in specs}) == len(specs) >= 2
        for spec in specs:
            assert DIGEST.fullmatch(spec.schema_digest)
            assert DIGEST.fullmatch(spec.contract_digest)
            assert spec.input_schema.get("type") == "object"
            assert spec.profile.name == spec.name

    def test_the_order_of_tools_changes_no_digest(self, catalog: ToolCatalog, reordered: ToolCatalog) -> None:
        assert [spec.name for spec in catalog.tools()] != [spec.name for spec in reordered.tools()]
        assert {spec.profile for spec in catalog.tools()} == {spec.profile for spec in reordered.tools()}

    def test_a_tool_that_is_not_there_is_unknown(self, catalog: ToolCatalog) -> None:
        assert catalog.bind("no such tool", {}) == UnknownTool("no such tool")

    def test_fitting_arguments_are_bound_to_the_tools_contract(
        self, catalog: ToolCatalog, example: ExampleCall
    ) -> None:
        call = bound(catalog.bind(example.tool_name, example.fitting))
        (spec,) = (spec for spec in catalog.tools() if spec.name == example.tool_name)
        assert call.tool_name == example.tool_name
        assert call.contract.digest == spec.contract_digest
        assert call.needs_permission is (call.contract.mode is not RecoveryMode.REPLAY_SAFE)

    def test_binding_twice_gives_the_same_terms(self, catalog: ToolCatalog, example: ExampleCall) -> None:
        first, second = (bound(catalog.bind(example.tool_name, example.fitting)) for _ in range(2))
        for terms in ("contract", "life", "resource_key", "timeout_seconds", "concurrency_limit", "writes_workspace"):
            assert getattr(first, terms) == getattr(second, terms)

    def test_misfits_are_named_and_nothing_else(self, catalog: ToolCatalog, example: ExampleCall) -> None:
        assert example.misfits
        for misfit in example.misfits:
            answer = catalog.bind(example.tool_name, misfit)
            assert isinstance(answer, SchemaMismatch), misfit
            assert answer.name == example.tool_name
            assert answer.detail

    def test_arguments_that_the_schema_does_not_name_are_a_mismatch(
        self, catalog: ToolCatalog, example: ExampleCall
    ) -> None:
        answer = catalog.bind(example.tool_name, {**example.fitting, "one_more_that_no_tool_has": 1})
        assert isinstance(answer, SchemaMismatch)

    @pytest.mark.parametrize("arguments", [None, [], "text", 3, True])
    def test_arguments_that_are_no_object_are_a_mismatch(
        self, catalog: ToolCatalog, example: ExampleCall, arguments: Json
    ) -> None:
        assert isinstance(catalog.bind(example.tool_name, arguments), SchemaMismatch)
