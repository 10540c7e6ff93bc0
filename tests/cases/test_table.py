"""docs/field-reports.md tells the truth: every report has its test, or a place where it belongs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
REPORTS = Path(__file__).with_name("field-reports.jsonl")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_field_reports", ROOT / "docs" / "field_reports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_all_reports_are_there_once_and_whole() -> None:
    reports = [json.loads(line) for line in REPORTS.read_text().splitlines()]
    assert len({one["id"] for one in reports}) == len(reports) == 105
    for one in reports:
        assert set(one) == {"id", "kind", "summary", "input", "expected"}
        assert all(one.values())


def test_every_report_is_driven_by_tests_that_exist_or_belongs_somewhere(generator: ModuleType) -> None:
    assert [fault for one in generator.reports() for fault in one.faults] == []


def test_only_what_has_not_been_begun_has_no_test(generator: ModuleType) -> None:
    """Checkpoints: every other report can be driven, at least in part."""
    without = [one for one in generator.reports() if not one.tests]
    assert [one.id for one in without if one.kind != "git checkpoint"] == []


def test_few_reports_do_not_apply(generator: ModuleType) -> None:
    without = [one.id for one in generator.reports() if one.not_applicable]
    assert len(without) <= generator.NOT_APPLICABLE_MAX


def test_the_page_is_what_is_made_now(generator: ModuleType) -> None:
    made = generator.page(generator.reports())
    assert generator.PAGE.read_text() == made, "run: python docs/field_reports.py"


def test_the_page_lists_every_report_once(generator: ModuleType) -> None:
    rows = [line.split(" | ")[0] for line in generator.PAGE.read_text().splitlines() if line.startswith("| r3-")]
    assert sorted(rows) == sorted(f"| {json.loads(line)['id']}" for line in REPORTS.read_text().splitlines())


def test_what_is_wrong_is_found(generator: ModuleType) -> None:
    def faults(**changed: object) -> list[str]:
        parts: dict[str, object] = {"tests": (), "later": (), "not_applicable": ""}
        return list(generator.Report("r3-999", "kind", "summary", "expected", **{**parts, **changed}).faults)

    here = "tests/cases/test_table.py::test_what_is_wrong_is_found"
    assert faults(tests=(here,)) == faults(later=(("host process", "all"),)) == faults(not_applicable="why") == []
    assert len(faults()) == 1
    assert len(faults(tests=(here, "tests/cases/test_table.py::test_nobody_wrote"))) == 1
    assert len(faults(tests=("tests/cases/nowhere.py::test_x",))) == 1
    assert len(faults(later=(("issue 2", ""),))) == 2
    assert len(faults(tests=(here,), not_applicable="why")) == 1
