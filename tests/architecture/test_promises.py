"""What is promised names a test that shows it, and the test is there."""

from __future__ import annotations

import re

import pytest

from .test_decisions import ROOT, exists

PAGE = ROOT / "docs" / "promises.md"
PROMISED, _, NOT_PROMISED = PAGE.read_text().partition("\n## Not promised\n")
ROWS = re.findall(r"^\| (?!promise |---)(.+) \| (.+) \|$", PROMISED, re.MULTILINE)
NAMED = re.findall(r"`(tests/[^`\n]+::[^`\n]+)`", PAGE.read_text())


@pytest.mark.parametrize(("promise", "shown_by"), ROWS)
def test_a_promise_names_the_test_that_shows_it(promise: str, shown_by: str) -> None:
    assert re.fullmatch(r"`tests/[^`]+::test_[a-z0-9_]+`", shown_by), promise


@pytest.mark.parametrize("test", NAMED)
def test_each_test_that_is_named_is_there(test: str) -> None:
    assert exists(test)


def test_there_are_promises_and_what_is_not_promised() -> None:
    assert len(ROWS) > 20
    assert NOT_PROMISED.count("\n- **") >= 6


def test_a_test_that_is_not_there_would_be_noticed() -> None:
    assert not exists("tests/architecture/test_promises.py::test_that_nobody_wrote")
    assert exists("tests/architecture/test_promises.py::test_each_test_that_is_named_is_there")


def test_the_first_page_leads_to_it() -> None:
    assert "(docs/promises.md)" in (ROOT / "README.md").read_text()
