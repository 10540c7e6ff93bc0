"""Isolated folders in one place beside the store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...domain.events.event import Timestamp
from ...ports.isolated_folders import IsolatedFolder, IsolatedFolders

REMOVING: Final = ".removing-"


class FoldersInPlace(IsolatedFolders):
    """Folders below one folder, which is made for its user alone when it is first needed.

    Args:
        place: that folder.
        new_key: names a new one.
    """

    def __init__(self, place: Path, new_key: Callable[[], str]) -> None:
        self._place = place
        self._new_key = new_key

    def new(self) -> str:
        """See `IsolatedFolders`."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(Path(os.path.realpath(self._place)) / self._new_key())

    def folders(self) -> Sequence[IsolatedFolder]:
        """See `IsolatedFolders`: their time is that of the newest change in the folder itself."""
        try:
            entries = sorted(Path(os.path.realpath(self._place)).iterdir())
        except FileNotFoundError:
            return ()
        return [IsolatedFolder(str(entry), _time_of(entry)) for entry in entries]

    def holds(self, path: str) -> bool:
        """See `IsolatedFolders`."""
        return Path(path).parent == Path(os.path.realpath(self._place))

    def remove(self, path: str) -> None:
        """Take its name away first, so that nobody finds half of it under that."""
        target = Path(path)
        if not self.holds(path):
            raise ValueError(f"{path} is none of the folders in {self._place}")
        doomed = target if target.name.startswith(REMOVING) else target.with_name(f"{REMOVING}{target.name}")
        if doomed != target:
            try:
                target.rename(doomed)
            except FileNotFoundError:
                return
        if doomed.is_symlink() or not doomed.is_dir():
            doomed.unlink(missing_ok=True)
        else:
            shutil.rmtree(doomed)


def _time_of(entry: Path) -> Timestamp:
    changed = datetime.fromtimestamp(entry.lstat().st_mtime, UTC)
    return f"{changed:%Y-%m-%dT%H:%M:%S.%f}Z"
