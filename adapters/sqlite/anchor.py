"""The anchor: a small file beside the database that says how far it had come. SPEC section 6.

It is written in place under its own lock, and never lowered: without it, a lost or cut WAL would read as "it never
happened". It is not synced: it protects against the death of a process, not of the machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ...domain.errors import StoreUnavailable

_MAGIC = "safepoint-anchor-v1"
_LENGTH_MAX = 4096
_RETRY_SECONDS = 0.002


class AnchorRecord(NamedTuple):
    """Which store, how many transactions that kept events, and the digest over them."""

    store_id: str
    counter: int
    digest: str


class NoAnchor(StrEnum):
    """Why an anchor says nothing."""

    MISSING = "missing"
    UNREADABLE = "unreadable"


AnchorReading: TypeAlias = AnchorRecord | NoAnchor


class Anchor:
    """One store's anchor file.

    Args:
        path: the file.
        lock_timeout_seconds: how long to wait for another process that writes it.
    """

    def __init__(self, path: Path, lock_timeout_seconds: float) -> None:
        self.path = path
        self.lock_timeout_seconds = lock_timeout_seconds

    def read(self) -> AnchorReading:
        """What the anchor says now.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return NoAnchor.MISSING
        except OSError as error:
            raise StoreUnavailable(f"cannot read the anchor {self.path}: {error}") from error
        try:
            return _parse(_content(descriptor)) or self.read_locked(descriptor)
        except OSError as error:
            raise StoreUnavailable(f"cannot read the anchor {self.path}: {error}") from error
        finally:
            os.close(descriptor)

    def read_locked(self, descriptor: int) -> AnchorReading:
        """Read once more while nobody writes: what did not parse may have been half of a write."""
        with self.locked(descriptor, fcntl.LOCK_SH):
            return _parse(_content(descriptor)) or NoAnchor.UNREADABLE

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
        """
        try:
            if self._descriptor is None or os.fstat(self._descriptor).st_nlink == 0:
                self.close()
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            return self._record(self._descriptor) or self._anchor.read_locked(self._descriptor)
        except FileNotFoundError:
            self.close()
            return NoAnchor.MISSING
        except OSError as error:
            raise StoreUnavailable(f"cannot read the anchor {self._path}: {error}") from error

    def raise_to(self, record: AnchorRecord) -> None:
        """Say that the store has come this far, unless the anchor already says more. `read` comes before.

        Raises:
            StoreUnavailable: it could not be written, or belongs to another store.
        """
        descriptor = self._descriptor
        if descriptor is None:
            raise StoreUnavailable(f"the anchor {self._path} is missing")
        try:
            self._anchor.lock(descriptor, fcntl.LOCK_EX)
            try:
                present = self._record(descriptor)
                if present is None or present.store_id != record.store_id:
                    raise StoreUnavailable(f"the anchor {self._path} is damaged, or belongs to another store")
                if present.counter < record.counter:
                    self._known = (_write(descriptor, record), record)
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
        content = _content(descriptor)
        if self._known is not None and self._known[0] == content:
            return self._known[1]
        record = _parse(content)
        self._known = None if record is None else (content, record)
        return record


class AnchorForMaking:
    """An anchor file whose lock is held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> AnchorReading:
        """What it says; an empty file is a missing anchor: whoever made it died before it could write."""
        content = _content(self._descriptor)
        return _parse(content) or (NoAnchor.UNREADABLE if content else NoAnchor.MISSING)

    def write(self, record: AnchorRecord) -> None:
        """Say exactly this, whatever it said before."""
        os.ftruncate(self._descriptor, len(_write(self._descriptor, record)))


def _text(record: AnchorRecord) -> bytes:
    said = f"{_MAGIC} {record.store_id} {record.counter:020d} {record.digest}"
    return f"{said} {hashlib.sha256(said.encode()).hexdigest()[:16]}\n".encode()


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, _LENGTH_MAX, 0)


def _write(descriptor: int, record: AnchorRecord) -> bytes:
    text = _text(record)
    if os.pwrite(descriptor, text, 0) != len(text):
        raise OSError(None, "the write was cut short")
    return text


def _parse(content: bytes) -> AnchorRecord | None:
    """The record in the content, or None when it is not exactly what `_text` makes."""
    try:
        magic, store_id, counter, digest, _ = content.decode("ascii").split(" ")
        record = AnchorRecord(store_id, int(counter), digest)
    except ValueError:
        return None
    return record if magic == _MAGIC and _text(record) == content else None
