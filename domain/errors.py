"""Errors that callers cannot go on after, each with its facts as attributes. SPEC section 22 has the codes.

Whatever a caller can branch on (a refusal, a park) is a value and stands beside what returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .reasons import WriteRefusal

if TYPE_CHECKING:
    from .identifiers import SessionId


class SafepointError(Exception):
    """Root of the errors that this package raises on purpose."""


class StoreError(SafepointError):
    """Something about the store itself; `code` is a refusal code of SPEC section 22."""

    code: WriteRefusal = WriteRefusal.STORE_UNAVAILABLE

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class StoreUnavailable(StoreError):
    """Could not look, or could not learn whether a commit became durable: never an answer about what is there.

    `no_room` tells that there was no room on the disk, so that trying again helps only once there is.
    """

    code = WriteRefusal.STORE_UNAVAILABLE

    def __init__(self, detail: str, *, no_room: bool = False) -> None:
        super().__init__(detail)
        self.no_room = no_room


class StoreMissing(StoreUnavailable):
    """There is no store at the place that was named."""


class StoreForbidden(StoreUnavailable):
    """This user may not do what SQLite needs: read the file, or make its journal beside it. Nothing was changed."""


class StoreObstructed(StoreUnavailable):
    """What stands beside the database keeps SQLite from opening it: another program's journal, or a link or a folder
    where a file should be. Nothing was changed.
    """


class StoreUnusable(StoreUnavailable):
    """What stands at the place that was named is no store and cannot become one: a folder, or the database of another
    program. It was left as it is.
    """


class StoreFull(StoreError):
    """No room to write; nothing was written."""

    code = WriteRefusal.STORE_FULL


class StoreVersionNewer(StoreError):
    """The store was written by a newer version; it was left untouched."""

    code = WriteRefusal.STORE_VERSION_NEWER

    def __init__(self, found: int, supported: int) -> None:
        super().__init__(f"the store has schema version {found}; this program knows {supported}")
        self.found = found
        self.supported = supported


class StoreVersionOlder(StoreUnavailable):
    """The store was written by an older version. Opening it for writing brings it forward, or adopting it where
    `distrust` says why it may not be written. It was left untouched.
    """

    def __init__(self, found: int, supported: int, distrust: str | None = None) -> None:
        sentence = f"the store has schema version {found}; this program reads version {supported}"
        super().__init__(sentence if distrust is None else f"{sentence}; {distrust}")
        self.found = found
        self.supported = supported
        self.distrust = distrust


class StoreDamaged(StoreError):
    """What is stored cannot be what was written."""

    code = WriteRefusal.STORE_DAMAGED


class StoreUnreadable(StoreDamaged):
    """Not even the first pages, or the rules, are what they were: nothing of the store can be read. It was left as it
    is.
    """


class BackupDamaged(StoreDamaged):
    """A backup that was to be put in a store's place; the store was left as it is."""


class ViewsDamaged(StoreDamaged):
    """A view that lists and pages are read from cannot be read. The events may be whole: views are made of them."""


class StoreNotAdopted(StoreDamaged):
    """The store is a copy, or cannot vouch for its tail: it may be read, and written only after `adopt`. SPEC section
    6.
    """


class StoreBehindAnchor(StoreNotAdopted):
    """The store is shorter than its anchor says: its tail is lost, so absence proves nothing. SPEC section 6."""


class StoreGone(StoreBehindAnchor):
    """There is no database, although its anchor says that it kept facts: there is nothing to adopt."""


class WriteRefused(SafepointError):
    """The ledger refused a command; nothing was written.

    Attributes:
        code: why, stable.
        detail: the same for a person, naming the thing.
        session_id: of the command; None where that is not told.
    """

    def __init__(self, code: WriteRefusal, detail: str, session_id: SessionId | None = None) -> None:
        super().__init__(f"{code.value}: {detail}")
        self.code = code
        self.detail = detail
        self.session_id = session_id


class RefusedWithoutEffect(SafepointError):
    """A tool raises this to say that it did nothing at all. SPEC F7."""
