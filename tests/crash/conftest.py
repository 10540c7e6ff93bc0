"""A stage for each test with nothing left running afterwards; one seed for all workers; and the histogram of kills."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness.fork_server import ForkServer
from .harness.instants import CLASSES, RARE
from .harness.stage import Stage
from .harness.tools import prepare

SEED_VARIABLE = "SAFEPOINT_CRASH_SEED"
RARE_MIN = 10
KILLS = 200


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed where the tests are started; workers inherit it."""
    os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(2**32)))


@pytest.fixture(scope="session")
def seed() -> int:
    """Of everything that is drawn at random."""
    return int(os.environ[SEED_VARIABLE])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed, how many kills fell into each class, and how the races ended."""
    races = Counter((name, str(value)) for name, value in _properties(terminalreporter) if name != "kill")
    if races:
        terminalreporter.section("races")
        for (name, outcome), count in sorted(races.items()):
            terminalreporter.write_line(f"{count:>4} x {name}: {outcome}")
    kills = _kills(terminalreporter)
    if not kills:
        return
    terminalreporter.section("kills at random instants")
    terminalreporter.write_line(f"{SEED_VARIABLE}={os.environ[SEED_VARIABLE]}")
    scenarios = sorted({scenario for scenario, _ in kills})
    for scenario in scenarios:
        counts = "  ".join(f"{name} {kills[scenario, name]}" for name in ("start", *CLASSES))
        terminalreporter.write_line(f"{scenario:>32}: {counts}")
    counts = "  ".join(f"{name} {_in_class(kills, name)}" for name in ("start", *CLASSES))
    terminalreporter.write_line(f"{'all':>32}: {counts}  = {kills.total()}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a whole set of kills that left a class rare."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    kills = _kills(reporter)
    rare = [name for name in RARE if _in_class(kills, name) < RARE_MIN]
    if kills.total() >= KILLS and rare:
        reporter.write_line(f"fewer than {RARE_MIN} kills fell into {', '.join(rare)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _properties(reporter: pytest.TerminalReporter) -> list[tuple[str, Any]]:
    reports = [report for name in ("passed", "failed") for report in reporter.stats.get(name, ())]
    crashes = [report for report in reports if report.when == "call" and "tests/crash" in report.nodeid]
    return [found for report in crashes for found in report.user_properties]


def _kills(reporter: pytest.TerminalReporter) -> Counter[tuple[str, str]]:
    return Counter((value[0], value[1]) for name, value in _properties(reporter) if name == "kill")


def _in_class(kills: Counter[tuple[str, str]], wanted: str) -> int:
    return sum(count for (_, name), count in kills.items() if name == wanted)


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    """Makes processes of the program cheaply; once per worker."""
    with ForkServer() as server:
        yield server


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """An empty store's place and a workspace with a file; each command is a new interpreter."""
    yield from _stage(tmp_path, None)


@pytest.fixture
def forked_stage(tmp_path: Path, forks: ForkServer) -> Iterator[Stage]:
    """The same, where each command is a forked process: for the many."""
    yield from _stage(tmp_path, forks)


def _stage(folder: Path, forks: ForkServer | None) -> Iterator[Stage]:
    made = Stage.in_folder(folder / "stage", forks)
    prepare(made)
    yield made
    made.clean_up()
