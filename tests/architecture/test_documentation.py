"""Every public name of the hexagon says what it is for. STYLE section 7."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import safepoint

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for folder in ("domain", "ports", "application") for path in (ROOT / folder).rglob("*.py") if path.is_file()
)


def undocumented(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Public classes, functions and methods without a docstring; what overrides a documented name says so instead."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
        if ast.get_docstring(node) is None and not marks & {"override", "overload", "setter"}:
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_has_its_docstring(path: Path) -> None:
    module = ast.parse(path.read_text())
    missing = list(undocumented(module.body))
    if ast.get_docstring(module) is None:
        missing.insert(0, "the module itself")
    # The contract kit's tests are sentences already, like all tests.
    if path.is_relative_to(ROOT / "ports" / "contract_kit"):
        missing = [name for name in missing if not name.rpartition(".")[2].startswith("test_")]
    assert missing == []


def test_a_missing_docstring_is_found_wherever_it_is_missing() -> None:
    source = '''
class Documented:
    """A class."""
    def method(self): ...
    def _private(self): ...
    @override
    def inherited(self): ...
    class Inner: ...
async def function(): ...
class _Private:
    def method(self): ...
'''
    assert list(undocumented(ast.parse(source).body)) == ["Documented.method", "Documented.Inner", "function"]


def test_the_public_face_is_sorted_and_documented() -> None:
    assert safepoint.__doc__
    assert safepoint.__all__ == sorted(set(safepoint.__all__))
    for name in safepoint.__all__:
        assert getattr(safepoint, name).__doc__, f"safepoint.{name} has no documentation"
