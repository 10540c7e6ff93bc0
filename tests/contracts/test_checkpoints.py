"""Every implementation of `Checkpoints` keeps its contract."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from safepoint.adapters.git.checkpoints import GitCheckpoints
from safepoint.adapters.memory.checkpoints import MemoryCheckpoints
from safepoint.adapters.system.clock import SystemClock
from safepoint.ports.checkpoints import Capture, WhyUnsupported
from safepoint.ports.contract_kit.checkpoints import CheckpointsContract, WorkingFolders


def in_threads(functions: Sequence[Callable[[], Capture]]) -> list[Capture]:
    with ThreadPoolExecutor(len(functions)) as pool:
        return [running.result() for running in [pool.submit(function) for function in functions]]


class Repositories(WorkingFolders):
    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, name: str) -> str:
        subprocess.run(["git", "init", "--quiet", self.path(name)], check=True)
        return self.path(name)

    def path(self, name: str) -> str:
        return str(self._root / name)

    def write(self, folder: str, path: str, content: bytes) -> None:
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def delete(self, folder: str, path: str) -> None:
        Path(folder, path).unlink()

    def files(self, folder: str) -> dict[str, bytes]:
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        named = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        return {path: content for path, content in named.items() if not path.startswith(".git/")}


class FoldersInMemory(WorkingFolders):
    def __init__(self, checkpoints: MemoryCheckpoints) -> None:
        self._checkpoints = checkpoints

    def make(self, name: str) -> str:
        self._checkpoints.make_folder(self.path(name))
        return self.path(name)

    def path(self, name: str) -> str:
        return f"/memory/{name}"

    def write(self, folder: str, path: str, content: bytes) -> None:
        self._checkpoints.folders[folder][path] = content

    def delete(self, folder: str, path: str) -> None:
        del self._checkpoints.folders[folder][path]

    def files(self, folder: str) -> dict[str, bytes]:
        return dict(self._checkpoints.folders[folder])


class TestGitCheckpoints(CheckpointsContract):
    @pytest.fixture
    def checkpoints(self, tmp_path: Path) -> GitCheckpoints:
        return GitCheckpoints(tmp_path / "place", SystemClock())

    @pytest.fixture
    def folders(self, tmp_path: Path) -> WorkingFolders:
        return Repositories(tmp_path)

    @pytest.fixture
    def unsupported(self, tmp_path: Path) -> str:
        (tmp_path / "plain").mkdir()
        return str(tmp_path / "plain")

    @pytest.fixture
    def unreadable(self, tmp_path: Path) -> str:
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        return str(loop)

    @pytest.fixture
    def at_once(self) -> Callable[[Sequence[Callable[[], Capture]]], list[Capture]]:
        return in_threads


class TestMemoryCheckpoints(CheckpointsContract):
    @pytest.fixture
    def checkpoints(self) -> MemoryCheckpoints:
        return MemoryCheckpoints(SystemClock())

    @pytest.fixture
    def folders(self, checkpoints: MemoryCheckpoints) -> WorkingFolders:
        return FoldersInMemory(checkpoints)

    @pytest.fixture
    def unsupported(self, checkpoints: MemoryCheckpoints, folders: WorkingFolders) -> str:
        path = folders.make("refused")
        checkpoints.refuse(path, WhyUnsupported.NOT_A_REPOSITORY)
        return path

    @pytest.fixture
    def unreadable(self, checkpoints: MemoryCheckpoints, folders: WorkingFolders) -> str:
        path = folders.make("unreadable")
        checkpoints.make_unreadable(path)
        return path

    @pytest.fixture
    def at_once(self) -> Callable[[Sequence[Callable[[], Capture]]], list[Capture]]:
        return in_threads
