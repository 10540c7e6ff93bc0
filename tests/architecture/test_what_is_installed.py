"""Without extras few packages come along, and nothing else is imported; the page on installing lists both."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from .environments import closure, run

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "installing.md").read_text()
NEEDS_AN_EXTRA = {
    "safepoint.adapters.anthropic": "anthropic",
    "safepoint.adapters.langgraph": "langgraph",
    "safepoint.adapters.mcp": "mcp",
    "safepoint.adapters.models.anthropic": "anthropic",
    "safepoint.adapters.models.openai": "openai",
    "safepoint.adapters.observation.opentelemetry": "otel",
    "safepoint.adapters.openai_agents": "openai-agents",
    "safepoint.adapters.embedding.configuration": "settings",
    "safepoint.adapters.pydantic_ai": "pydantic-ai",
    "safepoint.adapters.tools.json_schema": "mcp",  # and openai-agents, which brings the same package
    "safepoint.ports.contract_kit": "contract-kit",
}
"""Modules below these names may need the packages of an extra."""

IMPORT_ALL = """
import importlib, pkgutil
import safepoint

for module in pkgutil.walk_packages(safepoint.__path__, "safepoint."):
    if module.name.split(".")[1] in {"adapters", "application", "domain", "ports"}:
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            print(module.name, error.name)
"""


def names_in(text: str) -> set[str]:
    return set(re.findall(r"`([a-z0-9][a-z0-9_-]*)`", text))


def test_the_page_lists_every_package_that_comes_along_and_no_other() -> None:
    listed = PAGE.partition("compare the list:\n")[2].partition("\n\nOf these")[0]
    assert names_in(listed) == closure()


def test_the_page_says_what_for_each_package_is_that_is_asked_for() -> None:
    asked_for = {re.split(r"[<>=]", text)[0] for text in PROJECT["dependencies"]}
    rows = re.findall(
        r"^\| (`[^|]+`) \| .+ \|$", PAGE.partition("| asked for |")[2].partition("## Extras")[0], re.MULTILINE
    )
    assert names_in(" ".join(rows)) == asked_for


def test_the_page_lists_every_extra() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \| .+ \|$", PAGE.partition("| extra |")[2], re.MULTILINE)
    assert names_in(" ".join(rows)) >= set(PROJECT["optional-dependencies"])


def test_every_name_of_the_face_is_there_without_any_extra(tmp_path: Path) -> None:
    program = "import safepoint\nfor name in safepoint.__all__: getattr(safepoint, name)\nprint(len(safepoint.__all__))"
    done = run(program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


@pytest.mark.parametrize("command", [["--help"], ["list"], ["run", "Hello?"]], ids=" ".join)
def test_the_command_line_needs_no_extra(command: list[str], tmp_path: Path) -> None:
    done = run("from safepoint.__main__ import main; main()", *command, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert "as far as this test goes" not in done.stderr


def test_only_the_modules_of_an_extra_need_its_packages(tmp_path: Path) -> None:
    done = run(IMPORT_ALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    failed = dict(line.split() for line in done.stdout.splitlines())
    assert failed, "nothing was hidden"
    assert {name for name in failed if not name.startswith(tuple(NEEDS_AN_EXTRA))} == set()


def test_a_package_that_is_hidden_cannot_be_imported(tmp_path: Path) -> None:
    assert "No module named 'hypothesis'" in run("import hypothesis", cwd=tmp_path).stderr
    assert run("import pytest", extras=["contract-kit"], cwd=tmp_path).returncode == 0
    assert "No module named 'pytest'" in run("import pytest", cwd=tmp_path).stderr


def test_the_contract_kit_needs_its_own_extra_alone(tmp_path: Path) -> None:
    """Its modules, and the examples that show how a team proves parts of its own."""
    modules = sorted(path.stem for path in (ROOT / "ports" / "contract_kit").glob("*.py"))
    imports = "\n".join(f"import safepoint.ports.contract_kit.{name}" for name in modules if name != "__init__")
    examples = sorted(map(str, (ROOT / "examples" / "contract_kit").glob("test_*.py")))
    program = f"import sys\n{imports}\nimport pytest\nsys.exit(pytest.main(sys.argv[1:]))"
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = -q -p no:cacheprovider\n")
    arguments = ["-c", str(tmp_path / "pytest.ini"), "--import-mode=importlib"]
    done = run(program, *arguments, *examples, extras=["contract-kit"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 100


def test_a_contract_without_its_fixtures_says_what_to_override(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from safepoint.ports.contract_kit.clock import ClockContract\nclass TestMine(ClockContract): pass\n"
    )
    program = "import sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))"
    done = run(program, "-q", "-p", "no:cacheprovider", extras=["contract-kit"], cwd=tmp_path)
    assert done.returncode == 1
    assert "override the fixture `clock`" in done.stdout


def protocols() -> dict[str, str]:
    """The ports that others may serve: protocol -> module."""
    found = {}
    for path in (ROOT / "ports").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and "Protocol" in {ast.unparse(base) for base in node.bases}:
                found[node.name] = path.stem
    return found


PARTS_OF = {
    "EventReader": "EventStoreContract",
    "SessionViews": "ViewsContract",
    "FamilyViews": "ViewsContract",
    "OperationViews": "ViewsContract",
    "ContinuationViews": "ViewsContract",
    "Projections": "ViewsContract",
    "Listener": "HandoverContract",
    "HeldIncarnation": "IncarnationsContract",
    "SupervisedSlot": "SupervisorContract",
}
"""Protocols that are only met as a part of another, which is what the contract is of."""
NOT_SERVED = {"CancelSignal", "StartProof"}
"""Given to adapters, and made by none of them."""


def test_the_page_on_the_kit_names_a_contract_for_each_port() -> None:
    page = (ROOT / "docs" / "contract-kit.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)`[^|]* \| `(?:\w+\.)?(\w+Contract)` \|", page, re.MULTILINE))
    served = {name for name in protocols() if name not in PARTS_OF and name not in NOT_SERVED}
    assert set(rows) == served
    for port, contract in {**rows, **PARTS_OF}.items():
        module = "views" if contract == "ViewsContract" else protocols().get(contract.removesuffix("Contract"))
        assert module, port
        kit = importlib.import_module(f"safepoint.ports.contract_kit.{module}")
        assert hasattr(kit, contract)
