"""The crash contract as it is documented, as it is registered, and as it is tested: one and the same."""

from __future__ import annotations

from pathlib import Path

from safepoint.ports.failpoints import DESCRIPTIONS, Failpoint

from .harness.contract import EXPECTED, OF_CONTINUATIONS, OF_FILES, OF_PROMISES, OF_RUNS, Expectation, LookedUp

DOCUMENT = Path(__file__).parents[2] / "docs" / "crash-contract.md"


FILES = "## When a file is looked at again"
PROMISES = "## When another promise is kept"


def rows(document: str) -> dict[str, list[str]]:
    """A table: point -> its other cells."""
    lines = [line for line in document.splitlines() if line.startswith("| `P")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def cells_of(point: Failpoint, expected: Expectation) -> list[str]:
    """A row as it must stand there."""
    counts = [f"{before} → {after}" for before, after in (expected.effects, expected.requests)]
    return [DESCRIPTIONS[point], *counts, expected.verdict.value, expected.resume.value]


def test_every_point_is_documented_with_what_the_harness_expects_there() -> None:
    document, _, _ = DOCUMENT.read_text().partition(FILES)
    assert rows(document) == {str(point): cells_of(point, EXPECTED[point]) for point in Failpoint}


def test_what_a_look_at_a_file_settles_is_documented_as_the_harness_expects_it() -> None:
    _, _, document = DOCUMENT.read_text().partition(FILES)
    assert rows(document.partition("\n## ")[0]) == {
        str(point): looked_up_cells(looked_up) for point, looked_up in OF_FILES.items()
    }


def looked_up_cells(looked_up: LookedUp) -> list[str]:
    """A row of a look as it must stand there."""
    counts = [f"{before} → {after}" for before, after in (looked_up.effects, looked_up.requests)]
    return [*counts, looked_up.observation, looked_up.became]


def test_what_a_look_settles_by_any_other_promise_is_documented_as_the_harness_expects_it() -> None:
    _, _, document = DOCUMENT.read_text().partition(PROMISES)
    lines = [line for line in document.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert shown == [
        [f"`{mode}`", f"`{point}`", *looked_up_cells(looked_up)]
        for mode, by_point in OF_PROMISES.items()
        for point, looked_up in by_point.items()
    ]


def test_every_point_is_tried() -> None:
    tried = {Failpoint.RECOVERY_DECIDED, *OF_RUNS, *OF_CONTINUATIONS}
    assert tried == set(Failpoint) == set(EXPECTED)
