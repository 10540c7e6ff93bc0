"""Every implementation of `WorkspaceIdentity` keeps its contract."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.memory.workspace import MemoryWorkspaces
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.workspace.marker_identity import MarkerWorkspaceIdentity
from safepoint.ports.contract_kit.workspace import Folders, WorkspaceIdentityContract
from safepoint.ports.workspace import WorkspaceObservation


def in_threads(functions: Sequence[Callable[[], WorkspaceObservation]]) -> list[WorkspaceObservation]:
    with ThreadPoolExecutor(len(functions)) as pool:
        return [running.result() for running in [pool.submit(function) for function in functions]]


class RealFolders(Folders):
    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, name: str) -> str:
        (self._root / name).mkdir()
        return self.path(name)

    def path(self, name: str) -> str:
        return str(self._root / name)

    def move(self, source: str, name: str) -> str:
        return str(Path(source).rename(self._root / name))

    def copy(self, source: str, name: str) -> str:
        return str(shutil.copytree(source, self._root / name))


class MemoryFolders(Folders):
    def __init__(self, workspaces: MemoryWorkspaces) -> None:
        self._workspaces = workspaces

    def make(self, name: str) -> str:
        self._workspaces.make_folder(self.path(name))
        return self.path(name)

    def path(self, name: str) -> str:
        return f"/memory/{name}"

    def move(self, source: str, name: str) -> str:
        self._workspaces.move_folder(source, self.path(name))
        return self.path(name)

    def copy(self, source: str, name: str) -> str:
        self._workspaces.copy_folder(source, self.path(name))
        return self.path(name)


class TestMarkerWorkspaceIdentity(WorkspaceIdentityContract):
    @pytest.fixture
    def workspaces(self) -> MarkerWorkspaceIdentity:
        return MarkerWorkspaceIdentity(Uuid7Ids())

    @pytest.fixture
    def folders(self, tmp_path: Path) -> Folders:
        return RealFolders(tmp_path)

    @pytest.fixture
    def unreadable(self, tmp_path: Path) -> str:
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        return str(loop)

    @pytest.fixture
    def at_once(
        self,
    ) -> Callable[[Sequence[Callable[[], WorkspaceObservation]]], list[WorkspaceObservation]]:
        return in_threads


class TestMarkerWithoutUnnamedFiles(TestMarkerWorkspaceIdentity):
    """As on macOS, and on file systems that cannot give a file its name afterwards."""

    @pytest.fixture(autouse=True)
    def without_unnamed_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr("os.O_TMPFILE", raising=False)


class TestMemoryWorkspaces(WorkspaceIdentityContract):
    @pytest.fixture
    def workspaces(self) -> MemoryWorkspaces:
        return MemoryWorkspaces(CountingIds())

    @pytest.fixture
    def folders(self, workspaces: MemoryWorkspaces) -> Folders:
        return MemoryFolders(workspaces)

    @pytest.fixture
    def unreadable(self, workspaces: MemoryWorkspaces, folders: Folders) -> str:
        path = folders.make("unreadable")
        workspaces.make_unreadable(path)
        return path

    @pytest.fixture
    def at_once(
        self,
    ) -> Callable[[Sequence[Callable[[], WorkspaceObservation]]], list[WorkspaceObservation]]:
        return in_threads
