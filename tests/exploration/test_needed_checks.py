"""Each check of SPEC sections 7, 14 and 15 is needed: without it, some order of events breaks a rule."""

from __future__ import annotations

import pytest

from .checks import CHECKS, REMOVALS, Check
from .explorer import Explorer, RuleBroken
from .scenarios import BACK, FENCED, SCENARIOS


def name_of(check: Check) -> str:
    return check.name.replace(" ", "-")


SLOW = frozenset({BACK, FENCED})
"""Scenarios that take seconds to explore whole."""
BEHIND = [
    pytest.param(check, marks=pytest.mark.soak if check.scenario in SLOW else (), id=name_of(check))
    for check in CHECKS
    if check.behind
]


def explore(check: Check) -> None:
    Explorer(SCENARIOS[check.scenario])()


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_without_a_check_some_order_breaks_a_rule(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (check.name, *check.behind):
        REMOVALS[name](monkeypatch)

    with pytest.raises(RuleBroken) as broken:
        explore(check)

    assert check.breaks in {one.partition(":")[0] for one in broken.value.broken}, broken.value


@pytest.mark.parametrize("check", BEHIND)
def test_a_check_that_stands_before_another_can_be_spared_alone(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    check.remove(monkeypatch)

    explore(check)
