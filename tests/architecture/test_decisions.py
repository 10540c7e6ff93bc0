"""Decisions are recorded in one form, listed, and enforced by tests that exist. STYLE section 6."""

from __future__ import annotations

import ast
import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted(path for path in (ROOT / "adr").glob("*.md") if path.name != "README.md")
HEADINGS = [
    "Context",
    "Decision",
    "Invariant",
    "Owner",
    "Atomic boundary",
    "Failure half way",
    "Platforms",
    "Consequences",
    "Confirmation",
]
LINES_MAX = 60


def front_matter(text: str) -> dict[str, str]:
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if match is None:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in match[1].splitlines())}


def faults_of_form(name: str, text: str) -> list[str]:
    """What in a record's name, front matter, headings or length is not as it should be."""
    head = front_matter(text)
    faults = []
    if not re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", name):
        faults.append("the name is not NNNN-the-decision-as-a-sentence.md")
    if not re.fullmatch(r"proposed|accepted|superseded by \d{4}", head.get("status", "")):
        faults.append("status is not proposed, accepted or superseded by NNNN")
    try:
        date.fromisoformat(head.get("date", ""))
    except ValueError:
        faults.append("date is not YYYY-MM-DD")
    if len(re.findall(r"^# .+", text, re.MULTILINE)) != 1:
        faults.append("there is not exactly one title")
    if re.findall(r"^## (.+)", text, re.MULTILINE) != HEADINGS:
        faults.append("the headings are not " + ", ".join(HEADINGS))
    if len(text.splitlines()) > LINES_MAX:
        faults.append(f"it has more than {LINES_MAX} lines")
    return faults


def references(text: str) -> list[str]:
    """What the Confirmation names: `path::test`, or `pyproject.toml::name of an import contract`."""
    confirmation = text.partition("\n## Confirmation\n")[2]
    return re.findall(r"`([^`\n]+::[^`\n]+)`", confirmation)


def exists(reference: str) -> bool:
    """Tell whether a referenced test, or import contract, is there; a class may stand between path and test."""
    place, *names = reference.split("::")
    path = ROOT / place
    if not path.is_file():
        return False
    if place == "pyproject.toml":
        contracts = tomllib.loads(path.read_text())["tool"]["importlinter"]["contracts"]
        return names[0] in {contract["name"] for contract in contracts}
    body: list[ast.stmt] = ast.parse(path.read_text()).body
    for name in names:
        found = [
            node
            for node in body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
        ]
        if not found:
            return False
        body = found[0].body
    return names[-1].startswith("test_")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_record_has_the_one_form(path: Path) -> None:
    assert faults_of_form(path.name, path.read_text()) == []


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_confirmation_names_tests_that_exist(path: Path) -> None:
    named = references(path.read_text())
    assert named, "the Confirmation names no test"
    assert [reference for reference in named if not exists(reference)] == []


def test_numbers_are_never_reused_nor_left_out() -> None:
    assert [path.name[:4] for path in RECORDS] == [f"{number:04}" for number in range(1, len(RECORDS) + 1)]


def test_the_index_lists_every_record_once_and_in_order() -> None:
    index = (ROOT / "adr" / "README.md").read_text()
    assert re.findall(r"\]\((\d{4}[^)]*\.md)\)", index) == [path.name for path in RECORDS]


def test_the_template_of_the_index_has_the_form_that_is_checked() -> None:
    index = (ROOT / "adr" / "README.md").read_text()
    template = re.search(r"```markdown\n(.*?)```", index, re.DOTALL)
    assert template is not None
    assert faults_of_form("0001-a-sentence.md", template[1]) == []
    assert all(exists(reference) for reference in references(template[1]))


def test_a_record_without_its_parts_is_found() -> None:
    assert len(faults_of_form("1-Title.md", "text\n" * 61)) == 6
    assert not exists("tests/architecture/test_decisions.py::test_that_nobody_wrote")
    assert not exists("tests/no_such_file.py::test_x")
    assert not exists("pyproject.toml::No such contract")
    assert exists("pyproject.toml::No cycles between packages")
