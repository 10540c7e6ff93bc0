"""Every implementation of `Clock` keeps its contract."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.system.clock import SystemClock
from safepoint.ports.contract_kit.clock import ClockContract


class TestSystemClock(ClockContract):
    @pytest.fixture
    def clock(self) -> SystemClock:
        return SystemClock()


class TestManualClock(ClockContract):
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    def test_time_passes_when_it_is_told(self, clock: ManualClock) -> None:
        clock.advance(1.5)
        assert clock.now() == "2030-01-01T00:00:01.500000Z"
        assert clock.monotonic_seconds() == 1.5

    def test_wall_time_may_jump_and_steady_time_does_not(self, clock: ManualClock) -> None:
        clock.jump_wall(-3600)
        assert clock.now() == "2029-12-31T23:00:00.000000Z"
        assert clock.monotonic_seconds() == 0.0
        with pytest.raises(ValueError, match="does not go back"):
            clock.advance(-1)
