"""How modules are named and how they import. SPEC section 3, STYLE section 2."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import safepoint

ROOT = Path(__file__).parents[2]
FOLDERS = ("domain", "ports", "application", "adapters")
MODULES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
BANNED_WORDS = {"util", "utils", "helper", "helpers", "manager", "managers", "base", "common", "misc"}
CLOCK_READS = {"now", "today", "utcnow"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_or_folder_has_a_name_that_says_nothing() -> None:
    found = [
        name_of(path) for path in MODULES if BANNED_WORDS & set(re.split(r"[/_.]", name_of(path).removesuffix(".py")))
    ]
    assert found == []


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in MODULES}
    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_package_imports_itself_relatively(path: Path) -> None:
    absolute = []
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        absolute += [name for name in names if name.split(".")[0] in {"safepoint", "tests", *FOLDERS}]
    assert absolute == []


@pytest.mark.parametrize("path", [path for path in MODULES if path.is_relative_to(ROOT / "domain")], ids=name_of)
def test_the_domain_reads_no_clock(path: Path) -> None:
    """`datetime` may be imported for its type, so the import contracts cannot see this."""
    reads = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_READS
    ]
    assert reads == []


def test_no_module_of_the_hexagon_is_used_by_tests_alone() -> None:
    """What only tests ask is no rule of ours: it is a second copy of one, and belongs to the tests or goes."""
    used = {name for path in [ROOT / "__init__.py", *MODULES] for name in used_by(path)}
    inside = [
        path for path in MODULES if path.is_relative_to(ROOT / "domain") or path.is_relative_to(ROOT / "application")
    ]
    assert [name_of(path) for path in inside if path.name != "__init__.py" and dotted(path) not in used] == []


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def used_by(path: Path) -> Iterator[str]:
    """Modules that a module imports, at once or (named by a string, as for `later`) when they are first needed."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            begin = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            yield begin
            yield from (f"{begin}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.lstrip(".")


def test_no_two_adapters_have_classes_of_one_public_name() -> None:
    """Such as two `Runtime`s, of which a reader must find out which is meant."""
    named = Counter(
        node.name
        for path in MODULES
        if path.is_relative_to(ROOT / "adapters")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name in safepoint.__all__
    )
    homes = {name for name in named if getattr(safepoint, name).__module__.startswith("safepoint.adapters.")}
    assert {name: count for name, count in named.items() if name in homes and count > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_task_takes_a_session_in_one_way(path: Path) -> None:
    """By `application.taking.taken`, which gives up what a cancelled task does not get; threads take by themselves."""
    tasks = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.AsyncFunctionDef)]
    takes = [
        f"{task.name}: {ast.unparse(node)}"
        for task in tasks
        for node in ast.walk(task)
        if isinstance(node, ast.Attribute) and node.attr in {"own", "own_all", "held"}
    ]
    assert takes == ([] if path.name != "taking.py" else ["taken: ownership.own"])
