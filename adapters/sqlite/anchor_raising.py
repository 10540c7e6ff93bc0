"""The anchor as the writer raises it after each COMMIT. SPEC section 6."""

from __future__ import annotations

import fcntl
import os

from ...domain.errors import StoreForbidden, StoreUnavailable
from .anchor import Anchor
from .anchor_record import LENGTH_MAX, AnchorReading, AnchorRecord, NoAnchor, parse, write


class AnchorForRaising:
    """An anchor as the writer uses it, twice per commit: the file stays open, and what it said last is not parsed
    again.

    Args:
        anchor: the file.
    """

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._path = str(anchor.path)
        self._descriptor: int | None = None
        self._known: tuple[bytes, AnchorRecord] | None = None

    def read(self) -> AnchorReading:
        """What the anchor says now; opened again when the file was removed, or another took its name.

        Raises:
            StoreUnavailable: it could not be looked at.
            StoreForbidden: it may not be written.
        """
        descriptor = self._descriptor
        try:
            if descriptor is None or os.fstat(descriptor).st_nlink == 0:
                self.close()
                descriptor = self._descriptor = self._opened()
            return self._record(descriptor) or self._anchor.read_locked(descriptor)
        except FileNotFoundError:
            self.close()
            return NoAnchor.MISSING
        except OSError as error:
            raise StoreUnavailable(f"cannot read the anchor {self._path}: {error}") from error

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except PermissionError as error:
            raise StoreForbidden(f"the anchor {self._path} may not be written: {error.strerror}") from error

    def raise_to(self, record: AnchorRecord) -> None:
        """Say that the store has come this far, unless the anchor already says more. `read` comes before.

        Raises:
            StoreUnavailable: it could not be written, or belongs to another store.
        """
        descriptor = self._descriptor
        if descriptor is None:
            raise StoreUnavailable(f"the anchor {self._path} is missing")
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._anchor.lock(descriptor, fcntl.LOCK_EX)
            try:
                present = self._record(descriptor)
                if present is None or present.store_id != record.store_id:
                    raise StoreUnavailable(f"the anchor {self._path} is damaged, or belongs to another store")
                if present.counter < record.counter:
                    self._known = (write(descriptor, record), record)
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        except OSError as error:
            raise StoreUnavailable(f"cannot raise the anchor {self._path}: {error}") from error

    def close(self) -> None:
        """Release the file; idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        self._known = None
        if descriptor is not None:
            os.close(descriptor)

    def _record(self, descriptor: int) -> AnchorRecord | None:
        content = os.pread(descriptor, LENGTH_MAX, 0)
        known = self._known
        if known is not None and known[0] == content:
            return known[1]
        record = parse(content)
        self._known = None if record is None else (content, record)
        return record
