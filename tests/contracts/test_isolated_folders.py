"""Every implementation of `IsolatedFolders` keeps its contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.workspace.isolated_folders import FoldersInPlace
from safepoint.ports.contract_kit.isolated_folders import Disk, IsolatedFoldersContract


class RealDisk(Disk):
    def __init__(self, root: Path) -> None:
        self._root = root

    def fill(self, path: str) -> None:
        (Path(path) / "deep").mkdir(parents=True)
        (Path(path) / "deep" / "file").write_text("content")

    def is_there(self, path: str) -> bool:
        return Path(path).exists()

    def elsewhere(self) -> str:
        self.fill(str(self._root / "theirs"))
        return str(self._root / "theirs")


class TestFoldersInPlace(IsolatedFoldersContract):
    @pytest.fixture
    def isolated(self, tmp_path: Path) -> FoldersInPlace:
        ids = CountingIds()
        return FoldersInPlace(tmp_path.resolve() / "isolated", lambda: ids.fresh(str))

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Disk:
        return RealDisk(tmp_path.resolve())
