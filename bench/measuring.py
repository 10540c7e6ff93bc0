"""Medians, spread and what a ratio is held against. SPEC section 21: ratios inside one run, never times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .bars import Bar


class Spread(NamedTuple):
    """The median of several rounds, and the middle half of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one value a round; at least one."""
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a bar.

    Attributes:
        ratio: None where it could not be measured, `why` says so; such a bar is not held.
        bound: where the machine decides which bound applies; otherwise the bar's own.
        figures: absolute numbers, for people.
        memory: peak resident bytes by activity, where that was looked at.
    """

    bar: Bar
    ratio: Spread | None
    bound: float | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    memory: Mapping[str, int] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """The bound that applies."""
        return self.bar.bound if self.bound is None else self.bound

    @property
    def holds(self) -> bool:
        """Whether the median keeps to the bound."""
        if self.ratio is None:
            return False
        return self.ratio.median >= self.limit if self.bar.at_least else self.ratio.median <= self.limit


class Taken(NamedTuple):
    """What one piece of work took, in seconds."""

    wall: float
    cpu: float


def taken_by(work: Callable[[], object]) -> Taken:
    """Do a piece of work and say what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """The ratio round by round: both of a round were measured next to each other."""
    return Spread.of([mine / other for mine, other in zip(ours, theirs, strict=True)])


def added(first: Sequence[Taken], second: Sequence[Taken]) -> list[Taken]:
    """Both of a round together."""
    return [Taken(one.wall + other.wall, one.cpu + other.cpu) for one, other in zip(first, second, strict=True)]


def median_wall(taken: Sequence[Taken]) -> float:
    """The median of the wall times."""
    return median([one.wall for one in taken])


def wall_ratios(ours: Sequence[Taken], theirs: Sequence[Taken]) -> Spread:
    """The ratio of the wall times, round by round."""
    return ratios([one.wall for one in ours], [one.wall for one in theirs])


def cpu_ratio(ours: Sequence[Taken], theirs: Sequence[Taken]) -> str:
    """The median ratio of the CPU times, for people: on a busy machine it says more than the other."""
    return f"{ratios([one.cpu for one in ours], [one.cpu for one in theirs]).median:.2f}"


def median(values: Sequence[float]) -> float:
    """The median of one value a round."""
    return statistics.median(values)


def microseconds(seconds: float) -> str:
    """For people."""
    return f"{seconds * 1e6:,.0f} µs" if seconds >= 1e-5 else f"{seconds * 1e6:.1f} µs"


def milliseconds(seconds: float) -> str:
    """For people."""
    return f"{seconds * 1e3:,.1f} ms"


def in_seconds(seconds: float) -> str:
    """For people."""
    return f"{seconds:,.2f} s"


def per_second(number: float) -> str:
    """For people."""
    return f"{number:,.0f}/s"


def megabytes(size: float) -> str:
    """For people."""
    return f"{size / 1e6:,.0f} MB"
