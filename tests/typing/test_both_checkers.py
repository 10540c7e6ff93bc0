"""Both type checkers look at what users write, strictly, and refuse what is meant to be refused.

The files beside this one are checked with all tests; a line with `type: ignore` is one that a checker must refuse,
because both of them take an ignore that hides nothing for an error. That they do is tried here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
REFUSED = 'import safepoint\n\nsafepoint.open("agent.db", permission="perhaps")\n'
HIDES_NOTHING = 'import safepoint\n\nsafepoint.open("agent.db", permission="ask")  # type: ignore[arg-type]\n'


def said_by_pyright(text: str, folder: Path) -> list[str]:
    """The rules that a text breaks, by our settings."""
    settings = {key: value for key, value in TOOLS["pyright"].items() if key != "include"}
    paths = {"venvPath": str(ROOT), "extraPaths": [str(ROOT / path) for path in settings["extraPaths"]]}
    (folder / "pyrightconfig.json").write_text(json.dumps({**settings, **paths}))
    (folder / "theirs.py").write_text(text)
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return [found.get("rule", found["message"]) for found in json.loads(done.stdout)["generalDiagnostics"]]


def test_what_is_to_be_refused_is_refused_and_an_ignore_that_hides_nothing_is_found(tmp_path: Path) -> None:
    assert said_by_pyright(REFUSED, tmp_path) == ["reportArgumentType"]
    assert said_by_pyright(HIDES_NOTHING, tmp_path) == ["reportUnnecessaryTypeIgnoreComment"]


def test_both_are_strict_about_examples_and_these_files() -> None:
    assert TOOLS["pyright"]["typeCheckingMode"] == "strict"
    assert set(TOOLS["pyright"]["include"]) == {"examples", "tests/typing"}
    assert TOOLS["mypy"]["strict"] is True


def test_both_look_at_the_installed_package_before_a_submission() -> None:
    steps = (ROOT / ".ci" / "run").read_text().partition("rm .venv/typecheck/safepoint\n")[2].partition("ln -s")[0]
    assert ".venv/bin/mypy tests examples\n" in steps
    assert ".venv/bin/pyright\n" in steps
