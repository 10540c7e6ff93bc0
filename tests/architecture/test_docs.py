"""The pages say what the code says: names, files, links, commands and generated tables. STYLE section 6."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import safepoint
from safepoint.adapters.cli.main import application
from safepoint.adapters.demo.stage import Played
from safepoint.adapters.demo.story import ACTS, PORT_OF_SOMEBODY_ELSE
from safepoint.adapters.demo.table import print_table
from safepoint.adapters.models.script import Script

ROOT = Path(__file__).parents[2]
FOLDERS = ("domain", "ports", "application", "adapters", "tests", "bench", "docs", "adr", "examples", ".ci")
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "adr").glob("*.md")]
)
DOTTED = re.compile(r"(?<![\w./])(?:domain|ports|application|adapters)(?:\.[A-Za-z_]\w*)+")
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|\s)safepoint ([a-z]+)((?: [^\n|&#`]*)?)", re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_there(dotted: str) -> bool:
    """Tell whether `application.ledger.Ledger` is a module of the package, or a name in one."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(("safepoint", *parts[:end])))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part) and part not in getattr(found, "model_fields", {}):
                return False
            found = getattr(found, part, None)
        return True
    return False


def files_named_in(text: str) -> list[str]:
    """Paths of this repository in backticks, without the name of a test behind them."""
    named = [found.partition("::")[0] for found in IN_BACKTICKS.findall(text)]
    return [path for path in named if re.fullmatch(rf"({'|'.join(map(re.escape, FOLDERS))})/[\w./*-]*", path)]


def mistakes_in_commands(text: str) -> list[str]:
    """Commands of ours that the program does not take."""
    program = typer.main.get_command(application())
    commands: dict[str, Any] = program.commands  # type: ignore[attr-defined]  # a group, by its commands
    mistakes = []
    for verb, rest in COMMAND.findall(text):
        if verb not in commands:
            mistakes.append(f"safepoint {verb}")
            continue
        known = {option for parameter in commands[verb].params for option in (*parameter.opts, "--help")}
        mistakes += [f"safepoint {verb} {option}" for option in re.findall(r"--[a-z-]+", rest) if option not in known]
    return mistakes


@pytest.mark.parametrize("name", ["events.md", "reason-codes.md"])
def test_a_generated_page_is_what_the_code_makes_now(name: str) -> None:
    made = generator().pages()
    assert name in made
    assert (ROOT / "docs" / name).read_text() == made[name], "run: python docs/generate.py"


def test_an_event_or_code_without_documentation_cannot_be_shown() -> None:
    class Undocumented:
        pass

    with pytest.raises(ValueError, match="has no documentation"):
        generator()._sentence(Undocumented)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_name_of_the_code_exists(path: Path) -> None:
    assert [name for name in dict.fromkeys(DOTTED.findall(path.read_text())) if not is_there(name)] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_file_that_is_named_exists(path: Path) -> None:
    assert [named for named in files_named_in(path.read_text()) if not list(ROOT.glob(named.rstrip("/")))] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_link_leads_to_a_page_or_a_heading(path: Path) -> None:
    text = FENCE.sub("", path.read_text())
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        place, _, heading = target.partition("#")
        if "://" in target:
            continue
        page = (path.parent / place).resolve() if place else path
        headings = [re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in _headings(page)]
        if not page.exists() or (heading and heading not in headings):
            broken.append(target)
    assert broken == []


def _headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE) if page.suffix == ".md" and page.is_file() else []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_command_is_one_that_the_program_takes(path: Path) -> None:
    shown = [block for language, block in FENCE.findall(path.read_text()) if language in {"console", "sh", "bash"}]
    inline = IN_BACKTICKS.findall(FENCE.sub("", path.read_text()))
    assert mistakes_in_commands("\n".join([*shown, *inline])) == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_python_block_stands_in_an_example_that_is_run(path: Path) -> None:
    examples = [example.read_text() for example in (ROOT / "examples").rglob("*.py")]
    blocks = [block for language, block in FENCE.findall(path.read_text()) if language == "python"]
    parts = [part for block in blocks for part in block.strip().split("\n\n# …\n\n")]
    assert [part for part in parts if not any(part in example for example in examples)] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_diagram_names_the_code_and_can_be_read(path: Path) -> None:
    for language, block in FENCE.findall(path.read_text()):
        if language == "mermaid":
            assert DOTTED.search(block), "a diagram that names nothing of the code cannot be checked"
            assert not block.startswith("sequenceDiagram") or ";" not in block, "a semicolon ends a message"


def test_the_demo_in_the_readme_is_what_the_demo_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def played(number: int) -> Played:
        act = ACTS[number]
        going_on = act.verdict == "completed"
        naive = "the result is there: go on" if going_on else "no result: run it again"
        codes = () if act.decision == "continue" else ("dangling_tool_state",)
        content = PORT_OF_SOMEBODY_ELSE if act.edited else ""
        became = {"matches_expected_state": "completed", None: None}.get(act.observation, "parked")
        return Played(
            act,
            naive,
            act.verdict,
            act.reason,
            act.decision,
            codes,
            act.observation,
            became,
            act.killed,
            act.ended,
            content,
        )

    print_table([played(number) for number in range(len(ACTS))])
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    (shown,) = [block for language, block in FENCE.findall((ROOT / "README.md").read_text()) if language == "text"]
    assert shown.splitlines() == printed


def test_the_script_of_the_tour_can_be_played() -> None:
    (shown,) = [block for language, block in FENCE.findall((ROOT / "README.md").read_text()) if language == "json"]
    assert Script.model_validate_json(shown).steps


def test_what_is_wrong_is_found() -> None:
    assert not is_there("application.ledger.Leger")
    assert not is_there("domain.no_such_module")
    assert is_there("domain.events.run.RunEnded.recovered")
    assert files_named_in("`adapters/sqlite/anchor.py` and `tests/x.py::test_y` and `a/b.py`") == [
        "adapters/sqlite/anchor.py",
        "tests/x.py",
    ]
    assert mistakes_in_commands("safepoint plan S --script F\nsafepoint settel\n safepoint show --fulll") == [
        "safepoint settel",
        "safepoint show --fulll",
    ]


def test_the_library_page_names_the_whole_face() -> None:
    named = set(IN_BACKTICKS.findall((ROOT / "docs" / "library.md").read_text().partition("## All names")[2]))
    assert named >= {*safepoint.__all__, "Configuration"}
    assert all(hasattr(safepoint, name) for name in named if name.isidentifier())
