"""The contract of `Ids`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ...domain.identifiers import EventId, RunId, parse_id
from ..ids import Ids


class IdsContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def ids(self) -> Ids:
        """The implementation."""
        pytest.fail("override the fixture `ids`")

    @pytest.fixture
    def at_once(self) -> Callable[[Sequence[Callable[[], list[str]]]], list[list[str]]]:
        """Runs functions in threads of their own and returns what they return, in their order."""
        pytest.fail("override the fixture `at_once`")

    def test_an_id_is_legal_whatever_its_type(self, ids: Ids) -> None:
        for kind in (RunId, EventId, str):
            made = ids.fresh(kind)
            assert parse_id(made, "id") == made

    def test_later_ids_sort_after_earlier_ones_across_types(self, ids: Ids) -> None:
        made: list[str] = []
        for _ in range(500):
            made += [ids.fresh(RunId), ids.fresh(EventId)]
        assert made == sorted(set(made))

    def test_threads_never_get_the_same_id(
        self, ids: Ids, at_once: Callable[[Sequence[Callable[[], list[str]]]], list[list[str]]]
    ) -> None:
        def make() -> list[str]:
            return [ids.fresh(RunId) for _ in range(500)]

        made = [one for of_thread in at_once([make] * 4) for one in of_thread]
        assert len(set(made)) == 2_000
