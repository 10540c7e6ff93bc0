"""Workspaces that exist in memory alone."""

from __future__ import annotations

import threading

from ...ports.ids import Ids
from ...ports.workspace import (
    IDENTITY_PREFIX,
    Absent,
    CouldNotLook,
    WorkspaceIdentity,
    WorkspaceMissing,
    WorkspaceObservation,
    WorkspaceSeen,
)


class MemoryWorkspaces(WorkspaceIdentity):
    """Folders by path; a test makes, moves, copies and breaks them."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._folders: dict[str, str | None] = {}
        self._renewed_from: dict[str, str] = {}
        self._adopted: set[tuple[str, str]] = set()
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def make_folder(self, path: str) -> None:
        """Make a folder without a marker."""
        self._folders[path] = None

    def move_folder(self, source: str, target: str) -> None:
        """Move a folder with its marker."""
        self._folders[target] = self._folders.pop(source)

    def copy_folder(self, source: str, target: str) -> None:
        """Copy a folder with its marker."""
        self._folders[target] = self._folders[source]

    def make_unreadable(self, path: str) -> None:
        """From now on nobody can look at the folder."""
        self._unreadable.add(path)

    def observe(self, path: str) -> WorkspaceObservation:
        """Look at a folder."""
        if path in self._unreadable:
            return CouldNotLook(path, "permission denied")
        if path not in self._folders:
            return WorkspaceMissing(Absent.FOLDER, path)
        uuid = self._folders[path]
        if uuid is None:
            return WorkspaceMissing(Absent.MARKER, path)
        return WorkspaceSeen(
            IDENTITY_PREFIX + uuid, path, None, self._renewed_from.get(uuid), (path, uuid) in self._adopted
        )

    def ensure(self, path: str) -> WorkspaceObservation:
        """Look at a folder, and give it an identity when it has none."""
        with self._lock:
            if self._folders.get(path, "") is None and path not in self._unreadable:
                self._folders[path] = self._ids.fresh(str)
            return self.observe(path)

    def renew(self, path: str) -> WorkspaceObservation:
        """Give a folder another identity."""
        with self._lock:
            before = self.observe(path)
            if isinstance(before, WorkspaceSeen):
                uuid = self._ids.fresh(str)
                self._folders[path], self._renewed_from[uuid] = uuid, before.identity
            return self.observe(path)

    def adopt(self, path: str) -> WorkspaceObservation:
        """Note of a folder that it is the workspace."""
        with self._lock:
            uuid = self._folders.get(path)
            if uuid is not None and path not in self._unreadable:
                self._adopted.add((path, uuid))
            return self.observe(path)

    def disown(self, path: str) -> WorkspaceObservation:
        """Take that back."""
        with self._lock:
            if path not in self._unreadable:
                self._adopted.discard((path, self._folders.get(path) or ""))
            return self.observe(path)
