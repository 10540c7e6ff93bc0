"""What stands at a path of a workspace, for whoever compares it with what a file tool recorded."""

from __future__ import annotations

from pathlib import Path

from ....domain.file_evidence import FileState
from .confined import ConfinedPath
from .looking import look


def state_at(workspace: str, path: str) -> FileState | None:
    """Look at a file; None where that failed, which is not the same as finding nothing (F1).

    Args:
        workspace: absolute, without links.
        path: relative to it, with `/`, as evidence names it.
    """
    try:
        return look(Path(workspace), ConfinedPath(tuple(path.split("/")))).state
    except OSError:
        return None
