"""Every implementation of `ToolCatalog` keeps its contract."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.tool_catalog import MemoryCatalog, MemoryTool
from safepoint.adapters.tools.builtin import builtin_tools
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.domain.events.event import Json
from safepoint.ports.contract_kit.tool_catalog import ExampleCall, ToolCatalogContract
from safepoint.ports.tool_catalog import SyncCall, ToolCatalog


@tool(recovery="replay_safe")
def add(first: int, second: int = 0) -> int:
    """Add two numbers."""
    return first + second


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


class TestFunctionCatalog(ToolCatalogContract):
    @pytest.fixture
    def catalog(self) -> ToolCatalog:
        return FunctionCatalog([add, greet])

    @pytest.fixture
    def reordered(self) -> ToolCatalog:
        return FunctionCatalog([greet, add])

    @pytest.fixture
    def example(self) -> ExampleCall:
        misfits: tuple[Json, ...] = ({}, {"first": "1"}, {"first": None}, {"second": 1}, {"first": 1, "second": 1.5})
        return ExampleCall("add", {"first": 1}, misfits)


class TestBuiltinTools(ToolCatalogContract):
    @pytest.fixture
    def catalog(self) -> ToolCatalog:
        return FunctionCatalog(builtin_tools(scripted=True))

    @pytest.fixture
    def reordered(self) -> ToolCatalog:
        return FunctionCatalog(reversed(builtin_tools(scripted=True)))

    @pytest.fixture(params=["run_shell", "write_file", "append_file", "move_file", "record_effect"])
    def example(self, request: pytest.FixtureRequest) -> ExampleCall:
        examples = (
            ExampleCall(
                "run_shell",
                {"command": "true", "timeout_seconds": 5, "detach": True},
                ({}, {"command": 1}, {"command": "true", "timeout_seconds": 0}, {"command": "true", "detach": 1}),
            ),
            ExampleCall("write_file", {"path": "a", "content": ""}, ({"path": "a"}, {"path": "a", "content": None})),
            ExampleCall("append_file", {"path": "a", "text": "b"}, ({"path": "a", "text": ""}, {"path": "a"})),
            ExampleCall("move_file", {"path": "a", "new_path": "b"}, ({"path": "a"}, {"path": "a", "new_path": 1})),
            ExampleCall(
                "record_effect",
                {"path": "a", "line": "b", "contract": "idempotent"},
                ({"path": "a"}, {"path": "a", "line": "b", "contract": "sometimes"}),
            ),
        )
        return next(example for example in examples if example.tool_name == request.param)


class TestMemoryCatalog(ToolCatalogContract):
    tools = (
        MemoryTool(name="pay", parameters={"amount": int}, implementation=SyncCall(lambda arguments, context: None)),
        MemoryTool(name="look", implementation=SyncCall(lambda arguments, context: None)),
    )

    @pytest.fixture
    def catalog(self) -> ToolCatalog:
        return MemoryCatalog(self.tools)

    @pytest.fixture
    def reordered(self) -> ToolCatalog:
        return MemoryCatalog(self.tools[::-1])

    @pytest.fixture
    def example(self) -> ExampleCall:
        return ExampleCall("pay", {"amount": 3}, ({}, {"amount": "3"}, {"amount": True}))
