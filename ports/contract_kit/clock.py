"""The contract of `Clock`."""

from __future__ import annotations

import re

import pytest

from ..clock import Clock


class ClockContract:
    """Subclass it, override the fixture, and pytest checks an implementation of the port."""

    @pytest.fixture
    def clock(self) -> Clock:
        """The implementation."""
        pytest.fail("override the fixture `clock`")

    def test_wall_time_has_the_one_form_of_the_record(self, clock: Clock) -> None:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", clock.now())

    def test_steady_time_never_goes_back(self, clock: Clock) -> None:
        seen = [clock.monotonic_seconds() for _ in range(1_000)]
        assert seen == sorted(seen)
