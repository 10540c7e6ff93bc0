"""Every implementation of `Failpoints` keeps its contract."""

from __future__ import annotations

import pytest

from safepoint.adapters.failpoints.killing import KillingFailpoints, Trigger
from safepoint.adapters.failpoints.null import NoFailpoints
from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.ports.contract_kit.failpoints import FailpointsContract
from safepoint.ports.failpoints import DESCRIPTIONS, Failpoint


class TestNoFailpoints(FailpointsContract):
    @pytest.fixture
    def failpoints(self) -> NoFailpoints:
        return NoFailpoints()


class TestKillingFailpoints(FailpointsContract):
    @pytest.fixture
    def failpoints(self) -> KillingFailpoints:
        return KillingFailpoints([Trigger("never", 1), Trigger(Failpoint.EFFECT_DONE, 1_000)])


class TestRecordingFailpoints(FailpointsContract):
    @pytest.fixture
    def failpoints(self) -> RecordingFailpoints:
        return RecordingFailpoints()


def test_every_named_point_is_described_and_p0_to_p11_are_all_there() -> None:
    assert set(DESCRIPTIONS) == set(Failpoint)
    assert {point.value.partition(".")[0] for point in Failpoint} == {f"P{number}" for number in range(12)}


def test_hits_are_written_down_in_order() -> None:
    seen: list[str] = []
    failpoints = RecordingFailpoints(seen.append)
    failpoints.hit(Failpoint.BEFORE_T1)
    failpoints.hit("store.statement")
    assert failpoints.hits == seen == ["P0", "store.statement"]
