"""The contract of `IsolatedFolders`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..isolated_folders import IsolatedFolders


class IsolatedFoldersContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def isolated(self) -> IsolatedFolders:
        """The implementation, with no folder yet."""
        pytest.fail("override the fixture `isolated`")

    @pytest.fixture
    def fill(self) -> Callable[[str], None]:
        """Makes a folder at a path, with something in it, and in a folder below."""
        pytest.fail("override the fixture `fill`")

    @pytest.fixture
    def is_there(self) -> Callable[[str], bool]:
        """Tells whether anything is at a path."""
        pytest.fail("override the fixture `is_there`")

    @pytest.fixture
    def outside(self) -> str:
        """A folder that is there and none of these."""
        pytest.fail("override the fixture `outside`")

    def test_each_new_path_is_another_and_nothing_is_there(
        self, isolated: IsolatedFolders, is_there: Callable[[str], bool]
    ) -> None:
        paths = {isolated.new() for _ in range(5)}
        assert len(paths) == 5
        assert not any(map(is_there, paths))
        assert list(isolated.folders()) == []

    def test_what_was_made_is_listed_by_path(self, isolated: IsolatedFolders, fill: Callable[[str], None]) -> None:
        paths = sorted(isolated.new() for _ in range(3))
        for path in paths:
            fill(path)
        assert [one.path for one in isolated.folders()] == paths

    def test_a_removed_one_is_gone_with_all_that_it_held_and_the_others_stay(
        self, isolated: IsolatedFolders, fill: Callable[[str], None], is_there: Callable[[str], bool]
    ) -> None:
        first, second = isolated.new(), isolated.new()
        fill(first)
        fill(second)
        isolated.remove(first)
        assert not is_there(first)
        assert [one.path for one in isolated.folders()] == [second]

    def test_one_of_them_is_told_from_another_folder(
        self, isolated: IsolatedFolders, outside: str, fill: Callable[[str], None]
    ) -> None:
        path = isolated.new()
        fill(path)
        assert isolated.holds(path)
        assert not isolated.holds(outside)

    def test_removing_what_is_gone_does_nothing(self, isolated: IsolatedFolders, fill: Callable[[str], None]) -> None:
        path = isolated.new()
        isolated.remove(path)
        fill(path)
        isolated.remove(path)
        isolated.remove(path)
        assert list(isolated.folders()) == []

    def test_what_is_none_of_them_is_never_removed(
        self, isolated: IsolatedFolders, outside: str, is_there: Callable[[str], bool]
    ) -> None:
        with pytest.raises(ValueError, match="none of"):
            isolated.remove(outside)
        assert is_there(outside)
