"""Every order of what processes do to one session, to quiescence: the rules R6 to R12 hold in every state.

SPEC sections 2, 7, 14 and 15. The application is the real one, on an event loop and threads that a schedule steps.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .explorer import Explored, Explorer, Scenario
from .scenarios import LARGE, SCENARIOS, SEEN

Report = Callable[[str, object], None]
ORDERS_MAX = 3_000


def explore(scenario: Scenario, record_property: Report, orders_max: int | None) -> Explored:
    explored = Explorer(scenario, orders_max=orders_max)()
    record_property(scenario.name, f"{explored.states} states, {explored.orders} orders")
    print(explored)  # noqa: T201 (how much was explored is the result)
    return explored


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_order_of_commits_and_kills_breaks_a_rule(name: str, record_property: Report) -> None:
    explored = explore(SCENARIOS[name], record_property, ORDERS_MAX)

    missing = SEEN.get(name, frozenset()) - explored.ends.keys()
    assert not missing, f"it never came to {missing}, only to {sorted(explored.ends)}"


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGE)
def test_no_order_of_a_large_scenario_breaks_a_rule(name: str, record_property: Report) -> None:
    explore(LARGE[name], record_property, None)
