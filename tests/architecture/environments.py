"""Programs that see only the packages of some extras, as if nothing else were installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}, as far as this test goes", name=name)

sys.meta_path.insert(0, Absent())
"""


def closure(extras: Collection[str] = ()) -> set[str]:
    """Names of all distributions that `safepoint` brings along here, with the named extras."""
    found: set[str] = set()
    todo = [("safepoint", frozenset(extras))]
    seen = set()
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        found.add(canonicalize_name(name))
        todo += [(one.name, frozenset(one.extras)) for one in _requirements(name, wanted)]
    return found - {"safepoint"}


def run(program: str, *arguments: str, extras: Collection[str] = (), cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that can import the standard library, `safepoint`, and what comes with these extras."""
    there = closure(extras) | {"safepoint"}
    absent = {
        package
        for package, distributions in packages_distributions().items()
        if not there & {canonicalize_name(name) for name in distributions} and package not in sys.stdlib_module_names
    }
    command = [sys.executable, "-c", BLOCKED.format(absent=absent) + program, *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they are packages that are not there
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def _requirements(name: str, extras: Collection[str]) -> Iterator[Requirement]:
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": one}) for one in extras or {""}):
            yield requirement
