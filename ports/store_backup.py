"""Copies of a store as a whole: written while it is in use, and put back in its place. SPEC section 6 and issue 3.

A copy is foreign wherever it is put: what is in it is true, what is absent proves nothing, until a person adopts it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from ..domain.errors import SafepointError


class StoreInUse(SafepointError):
    """Somebody works on the store that was to be replaced; nothing was changed."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class CopyTargetTaken(SafepointError):
    """Something has the name that a copy was to get; it was left as it is."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} is there already")
        self.file = file


class StoreCopy(NamedTuple):
    """What a copy holds.

    Attributes:
        events: how many.
        digest: over all of them in their order; equal digests mean equal events.
        size_bytes: of its one file.
        fault: what SQLite finds wrong with its pages, None when nothing.
    """

    store_id: str
    events: int
    digest: str
    size_bytes: int
    fault: str | None


class Restored(NamedTuple):
    """A copy that stands in the store's place, and where the store that was there is now (None where none was)."""

    copy: StoreCopy
    previous: Path | None


Check = Callable[[Path, StoreCopy], None]
"""Looks at a finished copy before it gets its name; whatever it raises leaves everything as it was."""


class StoreBackup(Protocol):
    """Copies one store and puts copies in its place.

    Raises (all methods): StoreUnavailable, StoreFull, StoreDamaged, StoreVersionNewer, StoreMissing: nothing was
    changed and no unfinished copy is left.
    """

    @abstractmethod
    def back_up(self, file: Path, check: Check) -> StoreCopy:
        """Write the store as it stands now into one new file of its own, while others read and write.

        Raises:
            CopyTargetTaken: the file is there already.
        """

    @abstractmethod
    def restore(self, file: Path, check: Check, at: str) -> Restored:
        """Put the events of another store's file in this store's place. What was there is kept under another name, with
        its journal and its anchor.

        Args:
            file: a backup, or any store; it is not changed.
            check: looks at the copy that was made of it.
            at: the time, for the name of what was there.

        Raises:
            StoreInUse: another program has the present store open.
        """
