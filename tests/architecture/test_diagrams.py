"""The diagrams of the pages say what the code does: who may import whom, who uses whom, what is committed when."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grimp
import pytest

from . import traces

ROOT = Path(__file__).parents[2]
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NODE = re.compile(r"(\w+)(?:\(\[|\[|\{\{|\{)\"([^\"]+)\"(?:\]\)|\]|\}\}|\})")
ARROW = re.compile(r"\s(-->|-\. implements \.->|-- [^-]+ -->)\s")
MESSAGE = re.compile(r"^\s*(\w+)(-?->>)(\w+):", re.MULTILINE)
DOTTED = re.compile(r"(?:domain|ports|application|adapters)(?:\.\w+)+")


class Edge(NamedTuple):
    """An arrow from one label to another."""

    start: str
    kind: str
    end: str


def diagrams(name: str) -> list[str]:
    """The diagrams of a page, in order."""
    return MERMAID.findall((ROOT / "docs" / name).read_text())


def labels(diagram: str) -> dict[str, str]:
    """Node or participant -> what is written in it."""
    return dict(NODE.findall(diagram)) | dict(re.findall(r"participant (\w+) as (\S+)", diagram))


def edges(diagram: str) -> list[Edge]:
    """All arrows, those of chains and of several ends, too; a reply is no arrow of its own."""
    named = labels(diagram)
    found = [Edge(named[start], arrow, named[end]) for start, arrow, end in MESSAGE.findall(diagram) if arrow == "->>"]
    for line in [] if diagram.startswith("sequenceDiagram") else NODE.sub(r"\1", diagram).splitlines():
        parts = ARROW.split(line.strip())
        ends = [[end.strip() for end in part.split("&")] for part in parts[::2]]
        for before, arrow, after in zip(ends, parts[1::2], ends[1:], strict=False):
            found += [Edge(named[start], arrow, named[end]) for start in before for end in after]
    return found


def module_and_object(dotted: str) -> tuple[str, Any]:
    """The module of a dotted name, and what the name means in it."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        name = ".".join(("safepoint", *parts[:end]))
        try:
            found: Any = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return name, found
    raise AssertionError(f"{dotted} is not there")


def between_names() -> Iterator[tuple[str, Edge]]:
    """Arrows of the page on the architecture, between names of the code."""
    for diagram in diagrams("architecture.md"):
        for edge in edges(diagram):
            if DOTTED.fullmatch(edge.start) and DOTTED.fullmatch(edge.end) and edge.start != edge.end:
                yield diagram.partition("\n")[0], edge


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("safepoint", cache_dir=None)


def test_every_arrow_between_names_is_an_import_or_an_implementation(graph: grimp.ImportGraph) -> None:
    found = list(between_names())
    wrong = []
    for _, edge in found:
        (start, one), (end, other) = module_and_object(edge.start), module_and_object(edge.end)
        if "implements" in edge.kind:
            holds = other in one.__mro__
        else:
            holds = start == end or graph.find_shortest_chain(importer=start, imported=end) is not None
        wrong += [] if holds else [edge]
    assert wrong == []
    assert len(found) > 20
    assert sum("implements" in edge.kind for _, edge in found) == 3


def test_the_boxes_of_the_dependency_rule_are_the_layers_of_the_import_contracts() -> None:
    diagram = diagrams("reviewers.md")[0]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    outer, inner = [contract for contract in contracts if contract["type"] == "layers"]
    below = [{name} for name in outer["layers"] if name != "adapters"]
    layers = [{f"adapters.{name.strip('() ')}" for name in layer.split("|")} for layer in inner["layers"]] + below
    assert [set(label.split("<br/>")) for label in chain(diagram)] == layers


def chain(diagram: str) -> list[str]:
    """The labels of a diagram whose arrows make one line, from its first to its last."""
    found = edges(diagram)
    following = {edge.start: edge.end for edge in found}
    (first,) = set(following) - set(following.values())
    line = [first]
    while line[-1] in following:
        line.append(following[line[-1]])
    assert len(line) == len(found) + 1, "its arrows do not make one line"
    return line


def steps(diagram: str) -> list[str]:
    """What is written in the boxes s1, s2, … of a flow; its arrows join them in this order."""
    named = labels(diagram)
    order = [f"s{number}" for number in range(1, len(named) + 1)]
    assert " --> ".join(order) in diagram
    return [named[one] for one in order]


@pytest.mark.parametrize(
    ("number", "story"), [(1, traces.one_tool_call), (2, traces.one_crash), (3, traces.one_resume)]
)
def test_a_flow_is_what_the_program_commits(number: int, story: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert steps(diagrams("reviewers.md")[number]) == story(tmp_path)


def commands(texts: list[str]) -> list[str]:
    return [name for text in texts for name in re.findall(r"domain\.commands\.(\w+)", text)]


def test_the_sequences_name_the_commands_in_the_order_in_which_they_are_given(tmp_path: Path) -> None:
    _, call, _, resume = diagrams("architecture.md")
    refused, *admitted = [commands([part]) for part in re.split(r"^  (?:alt|else) .*$", call, flags=re.MULTILINE)][1:]
    (tmp_path / "call").mkdir()
    (tmp_path / "resume").mkdir()
    given = commands(traces.one_tool_call(tmp_path / "call"))
    assert refused == ["RefuseCall"]
    first = commands([call.partition("  alt ")[0]]) + admitted[0]
    assert first == given[1 : 1 + len(first)]
    continued = commands([resume])
    assert continued == commands(traces.one_resume(tmp_path / "resume"))[: len(continued)] != []


def test_what_is_wrong_in_a_diagram_is_found(graph: grimp.ImportGraph) -> None:
    drawn = """flowchart LR
  a["domain.x.A"] --> b["ports.y.B"] & c["ports.z.C"]
  b -. implements .-> c
  c -- no --> d["text"]
"""
    assert edges(drawn) == [
        Edge("domain.x.A", "-->", "ports.y.B"),
        Edge("domain.x.A", "-->", "ports.z.C"),
        Edge("ports.y.B", "-. implements .->", "ports.z.C"),
        Edge("ports.z.C", "-- no -->", "text"),
    ]
    told = """sequenceDiagram
  participant a as application.a.A
  participant b as ports.b.B
  a->>b: ask
  b-->>a: say
"""
    assert edges(told) == [Edge("application.a.A", "->>", "ports.b.B")]
    assert graph.find_shortest_chain("safepoint.domain.planning.planner", "safepoint.application.resume_run") is None
