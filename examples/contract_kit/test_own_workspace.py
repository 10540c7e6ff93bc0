"""A workspace identity of one's own, by a file of a team's own, and the proof that it keeps its contract.

python -m pytest examples/contract_kit/test_own_workspace.py
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from safepoint.ports.contract_kit.workspace import Folders, WorkspaceIdentityContract
from safepoint.ports.workspace import (
    IDENTITY_PREFIX,
    Absent,
    CouldNotLook,
    WorkspaceIdentity,
    WorkspaceMissing,
    WorkspaceObservation,
    WorkspaceSeen,
)

PROJECT_ID = ".acme-project"
CHOSEN = ".acme-project-chosen"


class ProjectIds(WorkspaceIdentity):
    """The first line of `.acme-project` names a folder; the second one, where there is one, what it was a copy of."""

    def observe(self, path: str) -> WorkspaceObservation:
        """See `WorkspaceIdentity`. That reading failed is never told as that nothing is there."""
        try:
            folder = Path(path).resolve(strict=True)
            lines = (folder / PROJECT_ID).read_text().splitlines()
        except FileNotFoundError:
            return WorkspaceMissing(Absent.MARKER if Path(path).is_dir() else Absent.FOLDER, path)
        except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
            return CouldNotLook(path, str(error))
        identity, *copied_from = (IDENTITY_PREFIX + line for line in lines)
        before = copied_from[0] if copied_from else None
        return WorkspaceSeen(identity, str(folder), renewed_from=before, adopted=self._chosen(folder, identity))

    def ensure(self, path: str) -> WorkspaceObservation:
        """See `WorkspaceIdentity`."""
        if isinstance(seen := self.observe(path), WorkspaceMissing) and seen.what is Absent.MARKER:
            whole = self._written(path, uuid.uuid4().hex)
            try:
                os.link(whole, Path(path, PROJECT_ID))  # of several processes one wins, and nobody sees half a file
            except FileExistsError:
                pass
            except OSError as error:
                return CouldNotLook(path, str(error))
            finally:
                whole.unlink()
        return self.observe(path)

    def renew(self, path: str) -> WorkspaceObservation:
        """See `WorkspaceIdentity`."""
        if isinstance(seen := self.observe(path), WorkspaceSeen):
            before = seen.identity.removeprefix(IDENTITY_PREFIX)
            self._written(path, f"{uuid.uuid4().hex}\n{before}").replace(Path(path, PROJECT_ID))
        return self.observe(path)

    def adopt(self, path: str) -> WorkspaceObservation:
        """See `WorkspaceIdentity`."""
        if isinstance(seen := self.observe(path), WorkspaceSeen):
            self._written(path, f"{seen.identity}\n{seen.canonical_path}").replace(Path(path, CHOSEN))
        return self.observe(path)

    def disown(self, path: str) -> WorkspaceObservation:
        """See `WorkspaceIdentity`."""
        if isinstance(seen := self.observe(path), WorkspaceSeen) and seen.adopted:
            Path(path, CHOSEN).unlink(missing_ok=True)
        return self.observe(path)

    def _chosen(self, folder: Path, identity: str) -> bool:
        """What a copy brings along names another path, and what was there before a renewal another identity."""
        try:
            return (folder / CHOSEN).read_text() == f"{identity}\n{folder}"
        except OSError:
            return False

    def _written(self, path: str, text: str) -> Path:
        file = Path(path, f"{PROJECT_ID}.{uuid.uuid4().hex}")
        file.write_text(text)
        return file


class RealFolders(Folders):
    """What the kit needs to move and copy folders, on a disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, name: str) -> str:
        """Make one."""
        (self._root / name).mkdir()
        return self.path(name)

    def path(self, name: str) -> str:
        """Where it is, or would be."""
        return str(self._root / name)

    def move(self, source: str, name: str) -> str:
        """Move one."""
        return str(Path(source).rename(self._root / name))

    def copy(self, source: str, name: str) -> str:
        """Copy one."""
        return str(shutil.copytree(source, self._root / name))


class TestProjectIds(WorkspaceIdentityContract):
    """The contract of the port, on this implementation."""

    @pytest.fixture
    def workspaces(self) -> WorkspaceIdentity:
        """The implementation."""
        return ProjectIds()

    @pytest.fixture
    def folders(self, tmp_path: Path) -> Folders:
        """The places that it looks at."""
        return RealFolders(tmp_path)

    @pytest.fixture
    def unreadable(self, tmp_path: Path) -> str:
        """A folder that nobody can look at."""
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        return str(tmp_path / "loop")

    @pytest.fixture
    def at_once(
        self,
    ) -> Iterator[Callable[[Sequence[Callable[[], WorkspaceObservation]]], list[WorkspaceObservation]]]:
        """Threads stand for processes here."""

        def look(looks: Sequence[Callable[[], WorkspaceObservation]]) -> list[WorkspaceObservation]:
            return [seen.result() for seen in [pool.submit(one) for one in looks]]

        with ThreadPoolExecutor() as pool:
            yield look
