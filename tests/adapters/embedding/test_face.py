"""`import safepoint` has few names, each imported when it is first used, from the place that the checkers see."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import safepoint

ROOT = Path(__file__).parents[3]


def seen_by_checkers() -> dict[str, tuple[str, str]]:
    """What the checkers see: each public name, its module and its name there."""
    module = ast.parse((ROOT / "__init__.py").read_text())
    guard = next(node for node in module.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_checkers_and_programs_see_the_same_names() -> None:
    assert sorted(seen_by_checkers().keys() - {"Configuration"}) == safepoint.__all__


def test_each_name_is_the_one_that_checkers_see() -> None:
    """In a process of its own, where none of them was imported before."""
    checks = [
        f"assert safepoint.{name} is getattr(import_module('safepoint.{module}'), {there!r}), {name!r}"
        for name, (module, there) in seen_by_checkers().items()
        if name != "events"
    ]
    lines = [
        "import safepoint",
        "from importlib import import_module",
        "assert set(safepoint.__all__) <= {*dir(safepoint)}",
    ]
    lines += [*checks, "assert safepoint.events is import_module('safepoint.adapters.embedding.happenings')"]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=60)


def test_importing_it_imports_nothing_else_of_it() -> None:
    code = "import json, sys, safepoint; print(json.dumps(sorted(m for m in sys.modules if m.startswith('safepoint'))))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(ran.stdout) == ["safepoint"]


def test_declaring_a_tool_opens_no_store() -> None:
    """A module of tools is imported by every process that runs one of them under a supervisor."""
    code = "import sys, safepoint; safepoint.tool; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    imported = set(ran.stdout.split())
    assert not {name for name in imported if name.startswith(("safepoint.adapters.sqlite", "safepoint.application"))}
    assert not imported & {"dependency_injector", "eventsourcing", "sqlite3", "typer", "rich"}


@pytest.mark.parametrize(
    "name", ["adapters.embedding.messages", "adapters.models.named", "adapters.tools.promised_tool"]
)
def test_what_docstrings_show_is_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"safepoint.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'safepoint' has no attribute 'no_such_name'"):
        getattr(safepoint, "no_such_name")  # noqa: B009 (the checkers know that it is not there)
