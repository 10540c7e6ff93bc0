"""Checkpoints of folders that exist in memory alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from ...domain import canonical
from ...ports.checkpoints import (
    CHECKPOINT_KEY,
    DIFFERENCES_MAX,
    Capture,
    CaptureLimits,
    Checkpoint,
    CheckpointMissing,
    Checkpoints,
    Compared,
    Difference,
    Differs,
    Kept,
    KeptCheckpoint,
    Materialization,
    Materialized,
    NotKept,
    Removed,
    TargetTaken,
    TargetUnusable,
    Unsupported,
    Verification,
    WhyUnsupported,
)
from ...ports.clock import Clock
from ...ports.workspace import CouldNotLook

CARRIER = "memory"
POLICY = canonical.sha256_hex(b"every file")


class MemoryCheckpoints(Checkpoints):
    """Folders by path, each with its files; a test makes, writes, refuses and breaks them.

    Attributes:
        folders: path -> file -> content.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.folders: dict[str, dict[str, bytes]] = {}
        self._refused: dict[str, WhyUnsupported] = {}
        self._unreadable: set[str] = set()
        self._kept: dict[str, tuple[KeptCheckpoint, dict[str, bytes]]] = {}
        self._lock = threading.Lock()

    def make_folder(self, path: str, files: Mapping[str, bytes] | None = None) -> None:
        """Make a folder with files."""
        self.folders[path] = dict(files or {})

    def refuse(self, path: str, why: WhyUnsupported) -> None:
        """From now on the folder cannot have checkpoints."""
        self._refused[path] = why

    def make_unreadable(self, path: str) -> None:
        """From now on nobody can look at the folder."""
        self._unreadable.add(path)

    def capture(self, folder: str, key: str, limits: CaptureLimits | None = None) -> Capture:
        """Keep a copy of the files."""
        if CHECKPOINT_KEY.fullmatch(key) is None:
            raise ValueError(f"no key of a checkpoint: {key!r}")
        with self._lock:
            files = self._files(folder)
            if not isinstance(files, dict):
                return files
            if limits is not None and self._new_bytes(files) > min(limits):
                return Unsupported(WhyUnsupported.CONTENT_TOO_LARGE, "there is more than was allowed")
            checkpoint = Checkpoint(CARRIER, f"memory/{key}", _tree_id(files), POLICY)
            kept, _ = self._kept.setdefault(
                checkpoint.ref, (KeptCheckpoint(checkpoint, self._clock.now(), folder), dict(files))
            )
            if kept.checkpoint != checkpoint:
                return CouldNotLook(folder, f"{checkpoint.ref} is there already, and keeps other content")
            return checkpoint

    def kept(self, folder: str) -> Kept | NotKept:
        """All of them."""
        with self._lock:
            files = self._files(folder)
            return Kept(tuple(kept for kept, _ in self._kept.values())) if isinstance(files, dict) else files

    def verify(self, folder: str, checkpoint: Checkpoint) -> Verification:
        """Compare the files."""
        with self._lock:
            files = self._files(folder)
            if not isinstance(files, dict):
                return files
            before = self._content(checkpoint)
            if isinstance(before, CheckpointMissing):
                return before
            found = [
                Difference(path, _how(path in before, path in files))
                for path in sorted(before.keys() | files.keys())
                if before.get(path) != files.get(path)
            ]
            return Compared(tuple(found[:DIFFERENCES_MAX]), len(found), checkpoint.policy_hash == POLICY)

    def materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        """Make another folder."""
        with self._lock:
            files = self._files(folder)
            if not isinstance(files, dict):
                return files
            content = self._content(checkpoint)
            if isinstance(content, CheckpointMissing):
                return content
            if target in self.folders:
                return TargetTaken(target)
            if target.startswith(f"{folder}/"):
                return TargetUnusable(target, f"it is inside the workspace {folder}")
            self.folders[target] = dict(content)
            return Materialized(target)

    def remove(self, folder: str, ref: str) -> Removed | NotKept:
        """Forget one."""
        with self._lock:
            files = self._files(folder)
            return Removed(self._kept.pop(ref, None) is not None) if isinstance(files, dict) else files

    def _new_bytes(self, files: Mapping[str, bytes]) -> int:
        known = {content for _, kept in self._kept.values() for content in kept.values()}
        return sum(len(content) for content in files.values() if content not in known)

    def _files(self, folder: str) -> dict[str, bytes] | NotKept:
        if folder in self._unreadable or folder not in self.folders:
            return CouldNotLook(folder, "it cannot be read")
        if folder in self._refused:
            return Unsupported(self._refused[folder], "the test says so")
        return self.folders[folder]

    def _content(self, checkpoint: Checkpoint) -> dict[str, bytes] | CheckpointMissing:
        found = self._kept.get(checkpoint.ref)
        if found is None:
            return CheckpointMissing(checkpoint.ref, "no such checkpoint")
        if found[0].checkpoint.tree_id != checkpoint.tree_id:
            return CheckpointMissing(checkpoint.ref, "it has other content than was accepted")
        return found[1]


def _tree_id(files: Mapping[str, bytes]) -> str:
    named = {path: canonical.sha256_hex(content) for path, content in files.items()}
    return canonical.sha256_hex(canonical.encode(named))


def _how(was_there: bool, is_there: bool) -> Differs:
    if was_there and is_there:
        return Differs.CHANGED
    return Differs.REMOVED if was_there else Differs.ADDED
