"""The import contracts of pyproject.toml hold, and each of them can fail. STYLE section 2."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

# One line that breaks the contract of this name, and the module that it is added to.
VIOLATIONS = {
    "Imports point from adapters to the domain": ("domain/reasons.py", "from .. import application"),
    "Technologies are independent of one another; only composition and what stands on it sees them all": (
        "adapters/memory/__init__.py",
        "from .. import sqlite",
    ),
    "No infrastructure inside the hexagon": ("application/__init__.py", "import sqlite3"),
    "Domain and ports know no event loop": ("ports/__init__.py", "import asyncio"),
    "The domain does no I/O, reads no clock, makes no randomness, writes no log": ("domain/__init__.py", "import time"),
    "JSON is encoded in one module of the domain": ("domain/reasons.py", "import json"),
    "The container stands in composition alone": ("adapters/cli/__init__.py", "import dependency_injector"),
    "eventsourcing stands in the storage adapter alone": ("adapters/memory/__init__.py", "import eventsourcing"),
    "Only the contract kit imports pytest": ("adapters/tools/__init__.py", "import pytest"),
    "The product does not import the contract kit": ("application/__init__.py", "from ..ports import contract_kit"),
    "No cycles between packages": ("domain/events/event.py", "from . import catalogue"),
}


def lint(**environment: str) -> subprocess.CompletedProcess[str]:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def statuses(output: str) -> dict[str, str]:
    """Contract name -> KEPT or BROKEN, from a report whose long names may be wrapped."""
    flat = " ".join(output.split())
    return {
        contract["name"]: found[1]
        for contract in CONTRACTS
        if (found := re.search(rf"{re.escape(contract['name'])} (KEPT|BROKEN)", flat))
    }


def test_every_import_contract_is_kept() -> None:
    report = lint()
    assert report.returncode == 0, report.stdout + report.stderr
    assert statuses(report.stdout) == {contract["name"]: "KEPT" for contract in CONTRACTS}


def test_every_import_contract_fails_when_one_import_breaks_it(tmp_path: Path) -> None:
    assert set(VIOLATIONS) == {contract["name"] for contract in CONTRACTS}
    package = tmp_path / "safepoint"
    package.mkdir()
    shutil.copy(ROOT / "__init__.py", package)
    for folder in ("domain", "ports", "application", "adapters"):
        shutil.copytree(ROOT / folder, package / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path, line in VIOLATIONS.values():
        with (package / path).open("a") as module:
            module.write(f"\n{line}\n")
    report = lint(PYTHONPATH=str(tmp_path))
    assert report.returncode == 1, report.stdout + report.stderr
    assert statuses(report.stdout) == {contract["name"]: "BROKEN" for contract in CONTRACTS}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("safepoint", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert "safepoint.domain.canonical" in imports
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules
