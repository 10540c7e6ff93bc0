"""Where to kill: every hit of an undisturbed run is an instant, and they are drawn so that none of P1 to P6 is rare."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .scenarios import LEFT_BEHIND, ONE_CALL, TWO_CALLS, WAITED_FOR, Scenario
from .stage import Stage

CLASSES: Final = ("P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9")
RARE: Final = ("P1", "P2", "P3", "P4", "P5", "P6")
"""The classes that must not be rare."""
SCENARIOS: Final = (ONE_CALL, TWO_CALLS, LEFT_BEHIND)
_FIRST_COMMIT = "store.after_anchor"


@dataclass(frozen=True, slots=True)
class Instant:
    """A hit of a scenario.

    Attributes:
        nth: of all hits together, from 1; None where it is killed from outside, in the middle of its work.
        point_class: the last named point at or before it.
    """

    scenario: Scenario
    nth: int | None
    point_class: str


def class_of(hits: Sequence[str]) -> str:
    """The last named point of some hits; `start` when there is none. The step that has no calls is part of P7."""
    last = next((hit for hit in reversed(hits) if hit in CLASSES), "start")
    return "P7" if "P7" in hits and last in {"P0", "P1"} else last


def undisturbed(scenario: Scenario, folder: Path) -> list[str]:
    """The hits of a run that nothing disturbs."""
    stage = Stage.in_folder(folder)
    scenario.prepare(stage)
    stage.sleeper.release()
    hits = stage.rehearse("run", "do it")
    assert scenario.effects(stage) == [1] * len(scenario.files)
    return hits


def nth_of(hits: Sequence[str], point: str, *, after: str = "") -> int:
    """Which hit of all, from 1, is the first one of a point after the first one of another."""
    start = hits.index(after) if after else 0
    return hits.index(point, start) + 1


def after_first_commit(hits: Sequence[str]) -> range:
    """The instants, from 1, that come after the first commit of facts."""
    return range(hits.index(_FIRST_COMMIT) + 1, len(hits) + 1)


def draw(randomness: random.Random, hits: dict[str, list[str]], count: int) -> list[Instant]:
    """Draw instants: scenarios in turn, every second one from one of the rare classes in turn, the others from all.

    Args:
        hits: of each scenario, undisturbed.
    """
    drawn = []
    for number in range(count):
        scenario = SCENARIOS[number % len(SCENARIOS)]
        place = number // len(SCENARIOS)
        wanted = RARE[place // 2 % len(RARE)] if place % 2 == 0 else None
        instants = [
            Instant(scenario, nth, class_of(hits[scenario.name][:nth]))
            for nth in after_first_commit(hits[scenario.name])
        ]
        if wanted == "P3" and scenario.leaves:
            instants = [Instant(WAITED_FOR, None, "P3")]
        drawn.append(randomness.choice([one for one in instants if wanted in {None, one.point_class}]))
    return drawn
