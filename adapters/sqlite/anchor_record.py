"""What an anchor says, as a person can read it: one line of a fixed length with a checksum. SPEC section 6."""

from __future__ import annotations

import hashlib
import os
from enum import StrEnum
from typing import NamedTuple, TypeAlias

_MAGIC = "safepoint-anchor-v1"
LENGTH_MAX = 4096


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


def text_of(record: AnchorRecord) -> bytes:
    """The line that says so; of one length for all records of a store, so that it can be written in place."""
    said = f"{_MAGIC} {record.store_id} {str(record.counter).zfill(20)} {record.digest}"
    return f"{said} {hashlib.sha256(said.encode()).hexdigest()[:16]}\n".encode()


def content_of(descriptor: int) -> bytes:
    """What the file holds."""
    return os.pread(descriptor, LENGTH_MAX, 0)


def write(descriptor: int, record: AnchorRecord) -> bytes:
    """Write a record in place; answers the bytes that were written.

    Raises:
        OSError: they were not written whole.
    """
    text = text_of(record)
    if os.pwrite(descriptor, text, 0) != len(text):
        raise OSError(None, "the write was cut short")
    return text


def parse(content: bytes) -> AnchorRecord | None:
    """The record in the content, or None when it is not exactly what `text_of` makes."""
    try:
        magic, store_id, counter, digest, _ = content.decode("ascii").split(" ")
        record = AnchorRecord(store_id, int(counter), digest)
    except ValueError:
        return None
    return record if magic == _MAGIC and text_of(record) == content else None
