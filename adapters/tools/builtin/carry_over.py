"""Brings into a folder that was made from a checkpoint what settled file operations left in the old one since."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ....domain.errors import RefusedWithoutEffect
from ....domain.file_evidence import FileChange
from .confined import ConfinedPath, opened_folder
from .looking import look

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def carry_over(folder: str, target: str, changes: Sequence[FileChange]) -> str | None:
    """Copy and remove files in the new folder; the old one is only read.

    Args:
        folder, target: absolute, without links.
        changes: the newest of each path.

    Returns:
        Why a file cannot be had: it is not any more what an operation left. None when all are there.
    """
    for change in changes:
        path = ConfinedPath(tuple(change.path.split("/")))
        try:
            if change.after.absent:
                Path(target, change.path).unlink(missing_ok=True)
            elif (wrong := _copied(Path(folder), Path(target), path, change)) is not None:
                return wrong
        except (OSError, RefusedWithoutEffect) as error:
            return f"{path.shown!r} could not be brought along: {error}"
    return None


def _copied(folder: Path, target: Path, path: ConfinedPath, change: FileChange) -> str | None:
    found = look(folder, path)
    if found.content is None or not change.is_after(found.state):
        return f"{path.shown!r} is not any more what the run left there"
    with opened_folder(target, path.names[:-1], make=True) as below:
        file = os.open(path.names[-1], _NEW, 0o666, dir_fd=below)
        with os.fdopen(file, "wb") as stream:
            stream.write(found.content)
            if found.state.mode is not None:
                os.fchmod(file, found.state.mode)
            stream.flush()
            os.fsync(file)
    return None
