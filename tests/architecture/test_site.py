"""The documentation site shows every page, and finds what each links to. It is built strictly by `make docs`."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import safepoint

ROOT = Path(__file__).parents[2]


class Config(yaml.SafeLoader):
    """Reads the tags that name functions of Python as their names."""


Config.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def config() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(), Config)
    return read


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_in(entry)


def test_every_page_stands_in_the_navigation_once() -> None:
    shown = list(pages_in(hooks().with_folders(config()["nav"])))
    here = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    records = [f"adr/{path.name}" for path in (ROOT / "adr").glob("0*.md")]
    made = [*hooks().ELSEWHERE.values(), "reference/face.md", "reference/ports.md", "reference/contract-kit.md"]
    assert sorted(shown) == sorted([*here, *records, *made])


def test_each_kind_of_page_that_was_asked_for_is_there() -> None:
    sections = [name for entry in config()["nav"] for name in entry]
    assert sections[:2] == ["Quick start", "Installing"]
    assert {"Recover", "Embed", "Frameworks", "Adapt", "Reference", "Review", "Decisions"} <= set(sections)


def test_the_reference_names_the_whole_face_and_every_port_and_contract() -> None:
    made = hooks()
    assert set(re.findall(r"^::: safepoint\.(\w+)$", made._face(), re.MULTILINE)) == {
        name for name in safepoint.__all__ if not name.startswith("_")
    }
    ports = {path.stem for path in (ROOT / "ports").glob("*.py")} - {"__init__"}
    assert set(re.findall(r"^::: safepoint\.ports\.(\w+)$", made._ports(), re.MULTILINE)) == ports
    contracts = {path.stem for path in (ROOT / "ports" / "contract_kit").glob("*.py")} - {"__init__"}
    assert set(re.findall(r"^::: safepoint\.ports\.contract_kit\.(\w+)$", made._kit(), re.MULTILINE)) == contracts


def test_the_reference_shows_what_a_public_class_has_from_one_that_is_not_public() -> None:
    public = {name: getattr(safepoint, name) for name in safepoint.__all__}
    classes = {name: one for name, one in public.items() if inspect.isclass(one)}
    hidden = {
        name: {
            member
            for base in one.__mro__[1:]
            if base.__module__.startswith("safepoint.") and base not in public.values()
            for member, value in vars(base).items()
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
        }
        - vars(one).keys()
        for name, one in classes.items()
    }
    assert {name for name, members in hidden.items() if members} == {"Session"}
    assert "::: safepoint.Session\n    options:\n      inherited_members: true\n" in hooks()._face()


def test_the_build_is_strict_about_links_headings_and_pages_that_are_left_out() -> None:
    validation = config()["validation"]
    assert set(validation["nav"].values()) | set(validation["links"].values()) == {"warn"}
    assert re.search(r"^docs: .*\n\t.*mkdocs build --strict", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "\nmake docs\n" in (ROOT / ".ci" / "run").read_text()


def test_nothing_is_fetched_for_the_look_of_a_page() -> None:
    assert config()["theme"]["font"] is False
