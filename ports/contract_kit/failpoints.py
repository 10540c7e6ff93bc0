"""The contract of `Failpoints`."""

from __future__ import annotations

import pytest

from ..failpoints import DESCRIPTIONS, Failpoint, Failpoints


class FailpointsContract:
    """Subclass it, override the fixture, and pytest checks an implementation of the port."""

    @pytest.fixture
    def failpoints(self) -> Failpoints:
        """The implementation, asked to kill at no point that is hit here."""
        pytest.fail("override the fixture `failpoints`")

    def test_every_named_point_can_be_hit_and_passed(self, failpoints: Failpoints) -> None:
        for point in DESCRIPTIONS:
            failpoints.hit(point)

    def test_free_points_can_be_hit_and_passed(self, failpoints: Failpoints) -> None:
        for point in ("store.statement", "tool.write_file.before_effect", Failpoint.EFFECT_DONE.value):
            failpoints.hit(point)
