"""Backups among stores in memory: the same contract and answers as those of files, for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...domain.errors import StoreMissing, StoreUnusable
from ...ports.store_backup import Check, CopyTargetTaken, Restored, StoreBackup, StoreCopy, StoreInUse
from ...ports.store_keeping import Trust
from .event_store import MemoryStore


class MemoryShelf:
    """Stores in memory by the names of files that do not exist.

    Attributes:
        stores: what stands where.
        anchored: the store that vouched last for what stood there, where another one took its place.
    """

    def __init__(self) -> None:
        self.stores: dict[Path, MemoryStore] = {}
        self.anchored: dict[Path, MemoryStore] = {}
        self._users = Counter[Path]()

    @contextmanager
    def in_use(self, path: Path) -> Iterator[MemoryStore]:
        """Work on a store, which is made where there is none; it is not replaced meanwhile."""
        self._users[path] += 1
        try:
            yield self.stores.setdefault(path, MemoryStore())
        finally:
            self._users[path] -= 1

    def require_unused(self, path: Path) -> None:
        """Refuse to replace a store that somebody works on."""
        if self._users[path]:
            raise StoreInUse(f"the store {path} is in use")

    def store(self, path: Path) -> MemoryStore:
        """What stands there."""
        if path not in self.stores:
            raise StoreMissing(f"there is no store at {path}")
        return self.stores[path]


class MemoryBackup(StoreBackup):
    """Backups of one store of a shelf.

    Args:
        shelf: has the stores.
        path: the store's name; nothing needs to stand there where a backup is to be restored.
    """

    def __init__(self, shelf: MemoryShelf, path: Path) -> None:
        self._shelf = shelf
        self._path = path

    def back_up(self, file: Path, check: Check) -> StoreCopy:
        """See `StoreBackup`."""
        if file in self._shelf.stores:
            raise CopyTargetTaken(file)
        made, copy = self._checked(self._path, Path(f"{file}.unfinished"), check)
        self._shelf.stores[file] = made
        return copy

    def restore(self, file: Path, check: Check, at: str) -> Restored:
        """See `StoreBackup`."""
        if file == self._path:
            raise StoreUnusable(f"{file} is the store itself: name the backup that is to take its place")
        made, copy = self._checked(file, Path(f"{self._path}.restoring"), check)
        self._shelf.require_unused(self._path)
        previous = None
        if self._path in self._shelf.stores:
            previous = Path(f"{self._path}.before-{''.join(filter(str.isalnum, at))}")
            before = self._shelf.stores[previous] = self._shelf.stores[self._path]
            if before.condition().trust is Trust.OK:
                self._shelf.anchored[self._path] = before
        anchored = self._shelf.anchored.get(self._path)
        if anchored is not None and not made.holds_all_of(anchored):
            made.distrust(Trust.COPIED_BEHIND_ANCHOR)
        self._shelf.stores[self._path] = made
        return Restored(copy, previous)

    def _checked(self, source: Path, unfinished: Path, check: Check) -> tuple[MemoryStore, StoreCopy]:
        """A copy that was looked at; while it is, it stands under an unfinished name."""
        made = self._shelf.store(source).copied()
        condition = made.condition()
        copy = StoreCopy(condition.store_id, condition.events, made.digest(), made.size_bytes(), None)
        self._shelf.stores[unfinished] = made
        try:
            check(unfinished, copy)
        finally:
            del self._shelf.stores[unfinished]
        return made, copy
