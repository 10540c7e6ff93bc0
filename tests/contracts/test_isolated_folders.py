"""The folders beside a store keep the contract of isolated folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.workspace.isolated_folders import FoldersInPlace
from safepoint.ports.contract_kit.isolated_folders import IsolatedFoldersContract
from safepoint.ports.isolated_folders import IsolatedFolders


class TestFoldersInPlace(IsolatedFoldersContract):
    @pytest.fixture
    def isolated(self, tmp_path: Path) -> IsolatedFolders:
        ids = Uuid7Ids()
        return FoldersInPlace(tmp_path / "isolated", lambda: ids.fresh(str))

    @pytest.fixture
    def fill(self) -> Callable[[str], None]:
        def make(path: str) -> None:
            below = Path(path) / "below"
            below.mkdir(parents=True)
            for folder in (below, below.parent):
                (folder / "file").write_text("x")

        return make

    @pytest.fixture
    def is_there(self) -> Callable[[str], bool]:
        return os.path.lexists

    @pytest.fixture
    def outside(self, tmp_path: Path) -> str:
        folder = tmp_path / "outside"
        folder.mkdir()
        return str(folder)
