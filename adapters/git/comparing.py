"""The differences between a checkpoint and the files as they are. SPEC section 16, *Drift*."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...ports.checkpoints import Difference, Differs
from ...ports.workspace import CouldNotLook
from .program import CannotAnswer
from .raw_view import RawView

_CHUNK_BYTES: Final = 1024 * 1024
_HOW: Final = {b"A": Differs.ADDED, b"D": Differs.REMOVED}


class _Side(NamedTuple):
    """What a tree has at a path."""

    mode: bytes
    object_id: bytes


def differences_between(view: RawView, checkpoint_tree: str, tree_now: str) -> list[Difference]:
    """All paths, relative to the workspace, that differ.

    Raises:
        CannotAnswer: a file could not be read.
    """
    raw = view.ask("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", checkpoint_tree, tree_now)
    found = []
    for before, status, path in _entries(raw):
        how = _HOW.get(status, Differs.CHANGED)
        # A file that is ignored by now is not in today's tree, and may well be there as it was.
        if how is Differs.REMOVED and (seen := _on_disk(view, path)) is not None:
            if seen == before:
                continue
            how = Differs.CHANGED
        found.append(Difference(os.fsdecode(path), how))
    return sorted(found)


def _entries(raw: bytes) -> Iterator[tuple[_Side, bytes, bytes]]:
    fields = iter(raw.split(b"\0"))
    for about in fields:
        if about:
            mode, _, object_id, _, status = about.removeprefix(b":").split(b" ")
            yield _Side(mode, object_id), status[:1], next(fields)


def _on_disk(view: RawView, path: bytes) -> _Side | None:
    """The file as a tree would have it, None where neither file nor link is there."""
    full = os.path.join(os.fsencode(view.repository.folder), path)
    if os.path.realpath(os.path.dirname(full)) != os.path.dirname(full):
        return None
    try:
        status = os.lstat(full)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(full)
            return _Side(b"120000", _object_id(view, len(target), iter([target])))
        if not stat.S_ISREG(status.st_mode):
            return None
        mode = b"100755" if status.st_mode & stat.S_IXUSR else b"100644"
        with open(full, "rb") as stream:
            chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
            return _Side(mode, _object_id(view, status.st_size, chunks))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotAnswer(CouldNotLook(os.fsdecode(full), str(error))) from error


def _object_id(view: RawView, size_bytes: int, chunks: Iterator[bytes]) -> bytes:
    """The name that Git gives to a blob of these bytes."""
    digest = hashlib.new(view.repository.object_format, b"blob %d\0" % size_bytes, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest().encode()
