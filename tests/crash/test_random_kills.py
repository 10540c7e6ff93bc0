"""Kills at random instants, in three stories. The seed is printed; SAFEPOINT_CRASH_SEED takes it again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness.fork_server import ForkServer
from .harness.instants import CLASSES, RARE, SCENARIOS, draw, undisturbed
from .harness.random_kill import try_instant
from .harness.scenarios import WAITED_FOR
from .harness.stage import Stage

KILLS = 200
KILLS_OF_SOAK = 2_000
KILLS_PER_TEST = 10

Hits = dict[str, list[str]]
Make = Callable[[str], Stage]
Report = Callable[[str, object], None]


@pytest.fixture
def make(tmp_path: Path, forks: ForkServer) -> Make:
    """Makes stages, by name."""
    return lambda name: Stage.in_folder(tmp_path / name, forks)


@pytest.fixture(scope="session")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Hits:
    """The hits of each scenario, undisturbed; once per worker."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return {scenario.name: undisturbed(scenario, folder / scenario.name) for scenario in SCENARIOS}


@pytest.mark.parametrize("first", range(0, KILLS, KILLS_PER_TEST))
def test_after_a_kill_at_any_instant_nothing_is_lost_repeated_or_guessed(
    make: Make, hits: Hits, seed: int, first: int, record_property: Report
) -> None:
    _kill(make, hits, seed, range(first, first + KILLS_PER_TEST), KILLS, record_property)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, KILLS_OF_SOAK, KILLS_PER_TEST))
def test_after_two_thousand_kills_nothing_is_lost_repeated_or_guessed(
    make: Make, hits: Hits, seed: int, first: int, record_property: Report
) -> None:
    _kill(make, hits, seed, range(first, first + KILLS_PER_TEST), KILLS_OF_SOAK, record_property)


def _kill(make: Make, hits: Hits, seed: int, numbers: range, count: int, report: Report) -> None:
    drawn = draw(random.Random(seed), hits, count)
    for number in numbers:
        fell = try_instant(drawn[number], make(str(number)), random.Random(f"{seed} {number}"))
        report("kill", [drawn[number].scenario.name, fell])


def test_the_draw_makes_no_class_rare_and_takes_every_class_and_every_scenario(hits: Hits) -> None:
    for seed in range(20):
        drawn = draw(random.Random(seed), hits, KILLS)
        assert min(sum(one.point_class == rare for one in drawn) for rare in RARE) >= 15
        assert {one.point_class for one in drawn} >= set(CLASSES)
        assert {one.scenario.name for one in drawn} == {scenario.name for scenario in (*SCENARIOS, WAITED_FOR)}
