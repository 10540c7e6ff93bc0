"""The contract of `IsolatedFolders`."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Protocol

import pytest

from ..isolated_folders import IsolatedFolders


class Disk(Protocol):
    """The places where the folders stand, in the hands of the test."""

    @abstractmethod
    def fill(self, path: str) -> None:
        """Make a folder at the path, with a file and a folder in it."""

    @abstractmethod
    def is_there(self, path: str) -> bool:
        """Tell whether something is at the path."""

    @abstractmethod
    def elsewhere(self) -> str:
        """The path of a filled folder that is none of these."""


class IsolatedFoldersContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def isolated(self) -> IsolatedFolders:
        """The implementation; it has no folder yet."""
        pytest.fail("override the fixture `isolated`")

    @pytest.fixture
    def disk(self) -> Disk:
        """Where they stand."""
        pytest.fail("override the fixture `disk`")

    def test_looking_makes_nothing(self, isolated: IsolatedFolders) -> None:
        assert list(isolated.folders()) == []
        assert list(isolated.folders()) == []

    def test_a_name_is_new_each_time_and_nothing_is_there(self, isolated: IsolatedFolders, disk: Disk) -> None:
        names = [isolated.new() for _ in range(3)]
        assert len(set(names)) == 3
        assert [name for name in names if disk.is_there(name)] == []
        assert list(isolated.folders()) == []

    def test_what_was_made_is_listed_by_its_path(self, isolated: IsolatedFolders, disk: Disk) -> None:
        made = [isolated.new() for _ in range(3)]
        for path in made:
            disk.fill(path)
        listed = isolated.folders()
        assert [one.path for one in listed] == sorted(made)
        for one in listed:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", one.made_at)

    def test_what_is_removed_is_gone_with_all_that_it_held_and_its_neighbours_stay(
        self, isolated: IsolatedFolders, disk: Disk
    ) -> None:
        doomed, kept = isolated.new(), isolated.new()
        for path in (doomed, kept):
            disk.fill(path)
        isolated.remove(doomed)
        assert not disk.is_there(doomed)
        assert [one.path for one in isolated.folders()] == [kept]
        assert disk.is_there(kept)

    def test_removing_again_changes_nothing(self, isolated: IsolatedFolders, disk: Disk) -> None:
        path = isolated.new()
        disk.fill(path)
        isolated.remove(path)
        isolated.remove(path)
        assert list(isolated.folders()) == []

    def test_what_is_none_of_them_is_never_removed(self, isolated: IsolatedFolders, disk: Disk) -> None:
        mine, theirs = isolated.new(), disk.elsewhere()
        disk.fill(mine)
        for path in (theirs, f"{mine}/..", f"{mine}/../..", ""):
            with pytest.raises(ValueError, match="none of"):
                isolated.remove(path)
        assert disk.is_there(theirs)
        assert [one.path for one in isolated.folders()] == [mine]
