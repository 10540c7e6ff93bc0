"""Hooks of the documentation site: pages that stand elsewhere in the repository, the reference, and links between them.

The pages are written to be read in the repository, too: links lead to files there, and are turned to pages here.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "build" / "site-package" / "safepoint"
ELSEWHERE = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "adr/README.md": "adr/index.md"}
"""Pages that are not in this folder -> where they stand on the site."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
PORTS_LEFT_OUT = {"__init__"}
IN_TWO_FILES = {"Session"}
"""Public classes that have some of their methods from one that is not public: these are shown, too."""


def on_config(config: Any) -> Any:
    """List the pages of folders, and let the reference be read from the package alone: a checkout holds far more."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    for folder in ("domain", "ports", "application", "adapters"):
        shutil.copytree(ROOT / folder, PACKAGE / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "__init__.py", PACKAGE)
    config.nav = with_folders(config.nav)
    return config


def with_folders(nav: Any) -> Any:
    """The navigation with `frameworks/` and `adr/` replaced by their pages: whoever adds one need not list it."""
    if isinstance(nav, dict):
        return {title: with_folders(entry) for title, entry in nav.items()}
    if isinstance(nav, list):
        return [with_folders(entry) for entry in nav]
    if nav == "frameworks/":
        return [f"frameworks/{path.name}" for path in sorted((ROOT / "docs" / "frameworks").glob("*.md"))]
    if nav == "adr/":
        return ["adr/index.md", *(f"adr/{path.name}" for path in sorted((ROOT / "adr").glob("0*.md")))]
    return nav


def on_files(files: Files, config: Any) -> Files:
    """Add what stands elsewhere, and the pages that are made from docstrings."""
    pages = {ELSEWHERE[name]: (ROOT / name).read_text() for name in ELSEWHERE}
    pages |= {f"adr/{path.name}": path.read_text() for path in (ROOT / "adr").glob("0*.md")}
    pages |= {"reference/face.md": _face(), "reference/ports.md": _ports(), "reference/contract-kit.md": _kit()}
    for place, text in sorted(pages.items()):
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Turn links between files of the repository to links between pages; a link to anything else becomes its text."""
    here = page.file.src_uri
    source = {site: name for name, site in ELSEWHERE.items()}.get(here)
    if source is None:
        source = here if here.startswith("adr/") else f"docs/{here}"

    def turned(match: re.Match[str]) -> str:
        target, hash_, heading = match[1].partition("#")
        if not target or "://" in target:
            return match[0]
        named = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        place = ELSEWHERE.get(named) or (named.removeprefix("docs/") if named.startswith(("docs/", "adr/")) else None)
        if place is None:
            return "](https://www.apache.org/licenses/LICENSE-2.0)" if named == "LICENSE" else match[0]
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{hash_}{heading})"

    return LINK.sub(turned, markdown)


def _face() -> str:
    """Every public name, documented where it is defined."""
    lines = ["# The face", "", "All that `import safepoint` offers; how it is used: [in your program](../library.md)."]
    for name in _exported():
        lines += ["", f"::: safepoint.{name}"]
        lines += ["    options:", "      inherited_members: true"] if name in IN_TWO_FILES else []
    return "\n".join(lines) + "\n"


def _exported() -> list[str]:
    for node in ast.parse((ROOT / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("_")]
    raise ValueError("the package does not say what it exports")


def _ports() -> str:
    """Every port, module by module."""
    lines = [
        "# Ports",
        "",
        "What the application needs from outside. How a part of your own is proven: the contract kit.",
    ]
    for path in sorted((ROOT / "ports").glob("*.py")):
        if path.stem not in PORTS_LEFT_OUT:
            lines += ["", f"::: safepoint.ports.{path.stem}"]
    return "\n".join(lines) + "\n"


def _kit() -> str:
    """Every contract, with the fixtures that an implementation gives."""
    lines = [
        "# Contracts",
        "",
        "The classes of the contract kit, with the fixtures to override and the tests that they run.",
    ]
    for path in sorted((ROOT / "ports" / "contract_kit").glob("*.py")):
        if path.stem not in PORTS_LEFT_OUT:
            lines += ["", f"::: safepoint.ports.contract_kit.{path.stem}"]
    return "\n".join(lines) + "\n"
