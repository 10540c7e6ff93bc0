"""The anchor: a small file beside the database that says how far it had come. SPEC section 6.

It is written in place under its own lock, and never lowered: without it, a lost or cut WAL would read as "it never
happened". It is not synced: it protects against the death of a process, not of the machine.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...domain.errors import StoreUnavailable
from .anchor_record import AnchorReading, AnchorRecord, NoAnchor, content_of, parse, write

_RETRY_SECONDS = 0.002


class Anchor:
    """One store's anchor file.

    Args:
        path: the file.
        lock_timeout_seconds: how long to wait for another process that writes it.
    """

    def __init__(self, path: Path, lock_timeout_seconds: float) -> None:
        self.path = path
        self.lock_timeout_seconds = lock_timeout_seconds

    def read(self, *, unlocked: bool = False) -> AnchorReading:
        """What the anchor says now.

        Args:
            unlocked: wait until nobody holds its lock: whoever makes the store does, until the database is there.

        Raises:
            StoreUnavailable: it could not be looked at, or is kept locked.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return NoAnchor.MISSING
        except OSError as error:
            raise StoreUnavailable(f"cannot read the anchor {self.path}: {error}") from error
        try:
            return (None if unlocked else parse(content_of(descriptor))) or self.read_locked(descriptor)
        except OSError as error:
            raise StoreUnavailable(f"cannot read the anchor {self.path}: {error}") from error
        finally:
            os.close(descriptor)

    def read_locked(self, descriptor: int) -> AnchorReading:
        """Read once more while nobody writes: what did not parse may have been half of a write."""
        with self.locked(descriptor, fcntl.LOCK_SH):
            return parse(content_of(descriptor)) or NoAnchor.UNREADABLE

    @contextmanager
    def exclusively(self) -> Iterator[AnchorForMaking]:
        """Make the file if need be, and hold its lock: for making and adopting a store, one process at a time.

        Raises:
            StoreUnavailable: it could not be made or locked.
        """
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"cannot make the anchor {self.path}: {error}") from error
        try:
            with self.locked(descriptor, fcntl.LOCK_EX):
                yield AnchorForMaking(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, descriptor: int, kind: int) -> None:
        """Take the file's lock; waits for other processes up to the time-out."""
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_lock(descriptor, kind)

    @contextmanager
    def locked(self, descriptor: int, kind: int) -> Iterator[None]:
        """Hold the file's lock."""
        self.lock(descriptor, kind)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _wait_for_lock(self, descriptor: int, kind: int) -> None:
        deadline = time.monotonic() + self.lock_timeout_seconds
        while True:
            time.sleep(_RETRY_SECONDS)
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StoreUnavailable(f"another process keeps the anchor {self.path} locked") from None
            else:
                return


class AnchorForMaking:
    """An anchor file whose lock is held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> AnchorReading:
        """What it says; an empty file is a missing anchor: whoever made it died before it could write."""
        content = content_of(self._descriptor)
        return parse(content) or (NoAnchor.UNREADABLE if content else NoAnchor.MISSING)

    def write(self, record: AnchorRecord) -> None:
        """Say exactly this, whatever it said before."""
        os.ftruncate(self._descriptor, len(write(self._descriptor, record)))
