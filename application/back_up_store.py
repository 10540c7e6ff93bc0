"""Backs a store up, and restores it from a backup; what was written is read again before it counts. Issue 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..domain.errors import BackupDamaged, StoreDamaged, StoreNotAdopted
from ..ports.clock import Clock
from ..ports.store_backup import Restored, StoreBackup, StoreCopy, StoreInUse
from .verify_store import Verification

Verify = Callable[[Path], Verification]


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A copy and what verifying it found. The copy is kept whatever was found: it is as damaged as its store."""

    copy: StoreCopy
    found: Verification

    @property
    def sound(self) -> bool:
        """True when nothing that was written is missing or changed in the copy."""
        return self.copy.fault is None and self.found.sound


class BackUpStore:
    """Backs one store up.

    Args:
        backup: makes the copy.
        verify: reads a store's file.
    """

    def __init__(self, backup: StoreBackup, verify: Verify) -> None:
        self._backup = backup
        self._verify = verify

    def __call__(self, file: Path) -> BackedUp:
        """Copy the store into a new file and verify what was written.

        Raises:
            CopyTargetTaken, StoreError: nothing was written.
        """
        found: list[Verification] = []
        copy = self._backup.back_up(file, lambda path, _: found.append(self._verify(path)))
        return BackedUp(copy, found[0])


class RestoreStore:
    """Puts a backup in the store's place.

    Args:
        backup: does it.
        verify: reads a store's file.
        held_locks: names the locks of processes and operations of the store that live.
        clock: the time, for the name of what was there.
    """

    def __init__(
        self, backup: StoreBackup, verify: Verify, held_locks: Callable[[], Sequence[str]], clock: Clock
    ) -> None:
        self._backup = backup
        self._verify = verify
        self._held_locks = held_locks
        self._clock = clock

    def __call__(self, file: Path) -> Restored:
        """Put the copy in place; it is foreign there until a person adopts it.

        Raises:
            StoreInUse: a process works on the store, or something that one of its tools started still runs.
            BackupDamaged: the backup is damaged; nothing is said of the store.
            StoreError: it could not be read or put in place. Nothing was changed in any of these cases.
        """
        self._require_unused()
        try:
            return self._backup.restore(file, self._check, self._clock.now())
        except StoreNotAdopted:
            raise
        except StoreDamaged as damage:
            raise BackupDamaged(damage.detail) from damage

    def _require_unused(self) -> None:
        if held := self._held_locks():
            raise StoreInUse(f"the store is in use: these locks are held: {', '.join(held)}")

    def _check(self, path: Path, copy: StoreCopy) -> None:
        found = self._verify(path)
        if copy.fault is not None or found.damaged_streams or found.unread is not None:
            first = found.damages[0] if found.damages else None
            named = "" if first is None else f"{first.stream}, event {first.sequence}: {first.detail}"
            raise StoreDamaged(f"the backup is damaged: {named or found.unread or copy.fault}")
        self._require_unused()
