"""Workspace identity by a marker file at the workspace's root. SPEC section 16."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ...ports.ids import Ids
from ...ports.workspace import (
    IDENTITY_PREFIX,
    MARKER_NAME,
    Absent,
    CouldNotLook,
    MarkerFault,
    WorkspaceIdentity,
    WorkspaceMissing,
    WorkspaceObservation,
    WorkspaceRefused,
    WorkspaceSeen,
)
from .git_exclude import exclude_from_git
from .marker import Fault, Marker, as_uuid, create_marker, path_digest, read_marker, replace_marker

_Look: TypeAlias = Callable[[int, str], WorkspaceObservation]
"""Gets the open folder and its canonical path."""


class MarkerWorkspaceIdentity(WorkspaceIdentity):
    """Reads and makes `.safepoint-workspace.json`.

    Args:
        ids: gives the UUID of a new workspace, or a text that is then made into one.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def observe(self, path: str) -> WorkspaceObservation:
        """Look at the folder and its marker."""
        return self._with_folder(path, _seen)

    def ensure(self, path: str) -> WorkspaceObservation:
        """Look, and make the marker when there is none; it is named in Git's exclude file first, so that Git never sees
        it.
        """
        return self._with_folder(path, self._ensured)

    def renew(self, path: str) -> WorkspaceObservation:
        """Replace the marker by one with a fresh UUID, which names the old one."""
        return self._with_folder(path, self._renewed)

    def _renewed(self, folder: int, canonical_path: str) -> WorkspaceObservation:
        found = _seen(folder, canonical_path)
        if isinstance(found, WorkspaceSeen):
            before = found.identity.removeprefix(IDENTITY_PREFIX)
            replace_marker(folder, Marker(as_uuid(self._ids.fresh(str)), before))
        return _seen(folder, canonical_path)

    def adopt(self, path: str) -> WorkspaceObservation:
        """Replace the marker by one that names the path, too."""
        return self._with_folder(path, partial(_named, adopted=True))

    def disown(self, path: str) -> WorkspaceObservation:
        """Replace the marker by one that names no path."""
        return self._with_folder(path, partial(_named, adopted=False))

    def _ensured(self, folder: int, canonical_path: str) -> WorkspaceObservation:
        found = _seen(folder, canonical_path)
        if not isinstance(found, WorkspaceSeen | WorkspaceMissing):
            return found
        notice = exclude_from_git(Path(canonical_path), MARKER_NAME)
        if isinstance(found, WorkspaceMissing):
            create_marker(folder, as_uuid(self._ids.fresh(str)))
        return _seen(folder, canonical_path, notice)

    def _with_folder(self, path: str, look: _Look) -> WorkspaceObservation:
        """Open the folder once and look at that one, whatever takes its place meanwhile."""
        try:
            canonical_path = os.path.realpath(path, strict=True)
            folder = os.open(canonical_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return WorkspaceMissing(Absent.FOLDER, path)
        except NotADirectoryError:
            return WorkspaceRefused(MarkerFault.NOT_A_FOLDER, path, f"{path} is no folder")
        except (OSError, ValueError) as error:
            return CouldNotLook(path, str(error))
        try:
            return look(folder, canonical_path)
        except OSError as error:
            return CouldNotLook(path, str(error))
        finally:
            os.close(folder)


def _seen(folder: int, canonical_path: str, notice: str | None = None) -> WorkspaceObservation:
    found = read_marker(folder)
    if found is None:
        return WorkspaceMissing(Absent.MARKER, canonical_path)
    if isinstance(found, Fault):
        return WorkspaceRefused(found.fault, canonical_path, found.detail)
    before = None if found.renewed_from is None else IDENTITY_PREFIX + found.renewed_from
    adopted = found.adopted == path_digest(canonical_path)
    return WorkspaceSeen(IDENTITY_PREFIX + found.uuid, canonical_path, notice, before, adopted)


def _named(folder: int, canonical_path: str, *, adopted: bool) -> WorkspaceObservation:
    found, named = read_marker(folder), path_digest(canonical_path) if adopted else None
    if isinstance(found, Marker) and found.adopted != named:
        replace_marker(folder, found._replace(adopted=named))
    return _seen(folder, canonical_path)
