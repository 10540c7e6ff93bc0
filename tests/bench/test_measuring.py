"""A bar is held by what was measured, and by nothing else. SPEC section 21."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import baselines
from bench.bars import BARS, CONCURRENT_RUNS, PAIR, REBUILD, Bar
from bench.measuring import Measured, Spread, Taken, ratios
from bench.pairs import pair_against_bare
from bench.rows import ROWS, Row, measured, rows_named
from bench.sizes import Sizes
from bench.workplace import Workplace

GIVEN = "b26433ed747cca4f3834751fe2cfbf87ccaf8b73b7cbe343afa6b8602816c61e"


def spread(median: float) -> Spread:
    return Spread(median, median, median)


def test_the_baselines_are_those_that_were_given() -> None:
    assert hashlib.sha256(Path(baselines.__file__).read_bytes()).hexdigest() == GIVEN


@pytest.mark.parametrize(
    ("bar", "ratio", "holds"),
    [(REBUILD, 1.99, True), (REBUILD, 2.01, False), (CONCURRENT_RUNS, 0.21, True), (CONCURRENT_RUNS, 0.19, False)],
)
def test_a_bar_is_held_by_the_median_on_its_side_of_the_bound(bar: Bar, ratio: float, holds: bool) -> None:
    assert Measured(bar, spread(ratio)).holds is holds


def test_a_bar_that_was_not_measured_is_not_held() -> None:
    assert not Measured(REBUILD, None, why="no room").holds


def test_the_ratio_is_taken_round_by_round() -> None:
    assert ratios([1, 20, 3], [1, 10, 1]) == Spread(2, 1.5, 2.5)


@pytest.mark.parametrize(
    ("bare_wall", "wall", "cpu", "bound", "holds"),
    [
        (0.002, 0.100, 0.0019, 0.5, True),  # a slow disk: our CPU counts, the time does not
        (0.002, 0.002, 0.0022, 0.5, False),
        (0.0008, 0.0011, 0.9, 1.5, True),  # a fast one: the time counts
        (0.0008, 0.0013, 0.0, 1.5, False),
        (0.0001, 0.00024, 0.0, 2.5, True),  # a very fast one: 150 µs are allowed whatever the ratio
        (0.0001, 0.00026, 0.0, 2.5, False),
    ],
)
def test_the_bound_of_the_pair_depends_on_what_a_bare_commit_takes(
    bare_wall: float, wall: float, cpu: float, bound: float, holds: bool
) -> None:
    one = pair_against_bare([Taken(wall, cpu)] * 3, [Taken(bare_wall, 0.001)] * 3)
    assert one.bar is PAIR
    assert one.limit == pytest.approx(bound)
    assert one.holds is holds


def test_every_bar_is_measured_by_exactly_one_row() -> None:
    assert sorted(bar.name for row in ROWS for bar in row.bars) == sorted(bar.name for bar in BARS)


def test_rows_are_chosen_by_their_own_name_or_by_a_bars() -> None:
    assert [row.name for row in rows_named(["concurrent_runs_against_one", "pair"])] == ["pair", "concurrent"]
    assert rows_named([]) == list(ROWS)
    with pytest.raises(ValueError, match="no row or bar is called speed"):
        rows_named(["speed"])


def test_a_row_that_fails_half_way_holds_what_it_measured_and_nothing_else(tmp_path: Path) -> None:
    def measure(work: Workplace) -> Iterator[Measured]:
        yield Measured(PAIR, spread(1))
        raise OSError("the disk is gone")

    row = Row("some", (PAIR, REBUILD), measure)
    first, second = measured(row, Workplace(tmp_path, tmp_path, Sizes(0.001)))
    assert first.holds
    assert (second.bar, second.ratio, second.holds, second.why) == (REBUILD, None, False, "OSError: the disk is gone")
