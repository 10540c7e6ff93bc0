"""Write field-reports.md from the reports, from the tests that carry their ids, and from what is said to come later.

python docs/field_reports.py. A test compares the page with what this makes.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
REPORTS = ROOT / "tests" / "cases" / "field-reports.jsonl"
STANDING = HERE / "field-reports.toml"
PAGE = HERE / "field-reports.md"
WHERE = ("host process",)
"""What is built after this."""
GENERATED = (
    "<!-- Made by docs/field_reports.py: give a test the report's id, or change field-reports.toml, and run it. -->"
)
NOT_APPLICABLE_MAX = 10
SHORT = 160
_ID = re.compile(r"r3[-_](\d{3})")


@dataclass(frozen=True)
class Report:
    """One situation, and what became of it.

    Attributes:
        tests: `path::name`, in the order of the files.
        later: what of it belongs elsewhere, and where.
        not_applicable: the reason, empty where it applies.
    """

    id: str
    kind: str
    summary: str
    expected: str
    tests: tuple[str, ...]
    later: tuple[tuple[str, str], ...]
    not_applicable: str

    @property
    def faults(self) -> Iterator[str]:
        """What is wrong with how it stands."""
        if not self.tests and not self.later and not self.not_applicable:
            yield f"{self.id} has no test, and nothing says where it belongs"
        if self.not_applicable and (self.tests or self.later):
            yield f"{self.id} does not apply and yet is driven, or planned"
        for where, what in self.later:
            if where not in WHERE:
                yield f"{self.id} belongs to {where!r}, which is none of {', '.join(WHERE)}"
            if not what:
                yield f"{self.id} does not say what belongs to {where}"
        for named in self.tests:
            if not is_there(named):
                yield f"{self.id} names {named}, which does not exist"


def reports() -> tuple[Report, ...]:
    """All of them, in the order of their ids."""
    told = tests_by_report()
    standing: Mapping[str, Any] = tomllib.loads(STANDING.read_text())
    found = [json.loads(line) for line in REPORTS.read_text().splitlines()]
    if unknown := sorted(set(standing) - {one["id"] for one in found}):
        raise ValueError(f"{STANDING.name} speaks of reports that do not exist: {', '.join(unknown)}")
    return tuple(_report(one, told, standing) for one in sorted(found, key=lambda one: str(one["id"])))


def _report(one: Mapping[str, str], told: Mapping[str, Sequence[str]], standing: Mapping[str, Any]) -> Report:
    said = standing.get(one["id"], {})
    if unknown := sorted(set(said) - {"tests", "later", "not_applicable"}):
        raise ValueError(f"{STANDING.name} says {', '.join(unknown)} of {one['id']}, which means nothing")
    named = dict.fromkeys((*told.get(one["id"], ()), *said.get("tests", ())))
    later = tuple((str(part.get("where", "")), str(part.get("what", ""))) for part in said.get("later", ()))
    reason = str(said.get("not_applicable", ""))
    return Report(one["id"], one["kind"], one["summary"], one["expected"], tuple(named), later, reason)


def tests_by_report() -> dict[str, list[str]]:
    """Report -> the tests that carry its id in their name, their docstring, or anywhere else in their source."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if _ID.search(text) is None:
            continue
        lines = text.splitlines()
        for name, node in _tests_in(ast.parse(text).body):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            source = "\n".join(lines[first - 1 : node.end_lineno])
            for number in dict.fromkeys(_ID.findall(source)):
                found.setdefault(f"r3-{number}", []).append(f"{path.relative_to(ROOT).as_posix()}::{name}")
    return found


def _tests_in(
    body: Sequence[ast.stmt], of_class: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests_in(node.body, f"{of_class}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield of_class + node.name, node


def is_there(named: str) -> bool:
    """Tell whether a test that is named `path::name` exists."""
    place, _, name = named.partition("::")
    path = ROOT / place
    return path.is_file() and name in dict(_tests_in(ast.parse(path.read_text()).body))


def page(all_reports: Sequence[Report]) -> str:
    """The page."""
    driven = [one for one in all_reports if one.tests]
    in_part = [one for one in driven if one.later]
    planned = [one for one in all_reports if one.later and not one.tests]
    without = [one for one in all_reports if one.not_applicable]
    places = Counter(where for one in planned for where, _ in one.later)
    lines = [
        "# Field reports",
        "",
        GENERATED,
        "",
        f"{len(all_reports)} situations that users of comparable systems really met, in neutral terms. A test that",
        "drives one carries its id. Codes under *expected* are the working terms of the report; the test has those of",
        "[reason codes](reason-codes.md). What is built later is named with where it belongs; *host process* is the",
        "server with its web console.",
        "",
        f"- {len(driven)} are driven by tests; of {len(in_part)} of these, a part comes later;",
        *(
            [f"- {len(planned)} are planned: {', '.join(f'{n} in {at}' for at, n in sorted(places.items()))};"]
            if planned
            else ()
        ),
        f"- {len(without)} do not apply.",
    ]
    for kind in sorted({one.kind for one in all_reports}, key=str.lower):
        lines += [
            "",
            f"## {kind[0].upper()}{kind[1:]}",
            "",
            "| report | what happened | expected | tested by, or planned |",
        ]
        lines.append("|---|---|---|---|")
        lines += (_row(one) for one in all_reports if one.kind == kind)
    return "\n".join(lines) + "\n"


def _row(one: Report) -> str:
    standing = [f"`{named}`" for named in one.tests]
    standing += (f"*{where}*: {_cell(what)}" for where, what in one.later)
    if one.not_applicable:
        standing.append(f"not applicable: {_cell(one.not_applicable)}")
    return f"| {one.id} | {_cell(one.summary)} | {_cell(_short(one.expected))} | {'<br>'.join(standing)} |"


def _short(text: str) -> str:
    """The first sentence, or as much of it as a table takes."""
    sentence = re.split(r"(?<=[.;]) ", text, maxsplit=1)[0]
    if len(sentence) <= SHORT:
        return sentence
    return sentence[:SHORT].rpartition(" ")[0] + " …"


def _cell(text: str) -> str:
    """Text that a cell shows as it is."""
    shown = text.replace("\\", "\\\\")
    for mark in "|<>*_`[]#~$":
        shown = shown.replace(mark, f"\\{mark}")
    return " ".join(shown.split())


if __name__ == "__main__":
    PAGE.write_text(page(reports()))
