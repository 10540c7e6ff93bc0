"""A failpoint's name means what it says, and a mistyped one is an error: it would never be hit."""

from __future__ import annotations

import pytest

from safepoint.adapters.failpoints.killing import MalformedFailpoint, Trigger, failpoints_from


@pytest.mark.parametrize("name", ["P99", "P11.clam", "P4,P12", "Px*"])
def test_a_name_that_is_no_point_is_refused(name: str) -> None:
    with pytest.raises(MalformedFailpoint):
        failpoints_from({"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": name})


@pytest.mark.parametrize("name", ["P0", "P11", "P11.claim", "P1*", "store.begin", "random:3"])
def test_a_name_of_a_point_or_of_its_parts_is_taken(name: str) -> None:
    assert failpoints_from({"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": name}) is not None


def test_a_point_stands_for_its_parts_and_not_for_its_neighbours() -> None:
    assert Trigger("P11", 1).stands_for("P11.claim")
    assert not Trigger("P1", 1).stands_for("P11.claim")
    assert not Trigger("P1", 1).stands_for("P10")
