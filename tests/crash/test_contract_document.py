"""The crash contract as it is documented, as it is registered, and as it is tested: one and the same."""

from __future__ import annotations

from pathlib import Path

from safepoint.ports.failpoints import DESCRIPTIONS, Failpoint

from .harness.contract import EXPECTED, OF_CONTINUATIONS, OF_RUNS, Expectation

DOCUMENT = Path(__file__).parents[2] / "docs" / "crash-contract.md"


def rows() -> dict[str, list[str]]:
    """The table: point -> its other cells."""
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `P")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def cells_of(point: Failpoint, expected: Expectation) -> list[str]:
    """A row as it must stand there."""
    counts = [f"{before} → {after}" for before, after in (expected.effects, expected.requests)]
    return [DESCRIPTIONS[point], *counts, expected.verdict.value, expected.resume.value]


def test_every_point_is_documented_with_what_the_harness_expects_there() -> None:
    assert rows() == {str(point): cells_of(point, EXPECTED[point]) for point in Failpoint}


def test_every_point_is_tried() -> None:
    tried = {Failpoint.RECOVERY_DECIDED, *OF_RUNS, *OF_CONTINUATIONS}
    assert tried == set(Failpoint) == set(EXPECTED)
