"""What stands at a path of the workspace, with the digest of its bytes: the look before T1 and the one after a crash.

Nothing is changed, and no link is followed. What cannot be read is an error, never an absence (F1).
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from ....domain.errors import RefusedWithoutEffect
from ....domain.file_evidence import Encoding, FileKind, FileState, LineEnds
from .confined import ConfinedPath, folded, opened_folder

KEPT_BYTES_MAX = 16 * 1024 * 1024
"""Up to this size a content is read whole, and looked through."""
HASHED_BYTES_MAX = 256 * 1024 * 1024
"""A larger file is not read: its size alone differs from everything that is ever recorded."""
ALIKE_MAX = 3
_CHUNK_BYTES = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LINE_ENDS = {b"\n": LineEnds.LF, b"\r\n": LineEnds.CRLF, b"\r": LineEnds.CR}


class Found(NamedTuple):
    """What a look found.

    Attributes:
        at: the part of the path that decided it, as it is shown.
        status: of a regular file, as it was while it was read.
        content: of a regular file of at most `KEPT_BYTES_MAX` bytes.
    """

    state: FileState
    at: str
    status: os.stat_result | None = None
    content: bytes | None = None


def look(workspace: Path, target: ConfinedPath) -> Found:
    """Walk down to a file and read it.

    Args:
        workspace: absolute, without links; it must be there.

    Raises:
        OSError: could not look.
    """
    with ExitStack() as opened:
        folder = os.open(workspace, _FOLDER)
        opened.callback(os.close, folder)
        for depth, name in enumerate(target.names[:-1], start=1):
            way = "/".join(target.names[:depth])
            kind = _kind(folder, name)
            if kind is FileKind.ABSENT:
                return Found(FileState(kind=FileKind.NO_FOLDER), way)
            if kind is FileKind.LINK:
                return Found(FileState(kind=kind), way)
            try:
                folder = os.open(name, _FOLDER, dir_fd=folder)
            except NotADirectoryError:
                return Found(FileState(kind=FileKind.OTHER), way)
            opened.callback(os.close, folder)
        return look_in(folder, target)


def look_in(folder: int, target: ConfinedPath) -> Found:
    """Read a file of an open folder, the one that `target` ends in.

    Raises:
        OSError: could not look.
    """
    name = target.names[-1]
    kind = _kind(folder, name)
    if kind is not FileKind.REGULAR:
        return Found(FileState(kind=kind), target.shown)
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return Found(FileState(kind=FileKind.OTHER), target.shown)
        return _read(file, status, target.shown)
    finally:
        os.close(file)


def names_alike(workspace: Path, target: ConfinedPath) -> list[str]:
    """Find the files beside a missing one whose names differ in case or composition alone, at most `ALIKE_MAX`."""
    wanted = folded(target.names[-1])
    try:
        with opened_folder(workspace, target.names[:-1]) as folder, os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if folded(entry.name) == wanted)
    except (OSError, RefusedWithoutEffect):
        return []
    return ["/".join((*target.names[:-1], name)) for name in names[:ALIKE_MAX]]


def state_of(content: bytes, mode: int | None) -> FileState:
    """Describe a content that is to be written, or was read whole."""
    return FileState(
        kind=FileKind.REGULAR,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        mode=mode,
        encoding=_encoding(content),
        line_ends=_line_ends(content),
    )


def fingerprint(status: os.stat_result) -> tuple[int, ...]:
    """What differs when a file was replaced or written meanwhile, as far as a look from outside tells."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def _kind(folder: int, name: str) -> FileKind:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return FileKind.ABSENT
    if stat.S_ISLNK(mode):
        return FileKind.LINK
    return FileKind.REGULAR if stat.S_ISREG(mode) else FileKind.OTHER


def _read(file: int, status: os.stat_result, shown: str) -> Found:
    mode = stat.S_IMODE(status.st_mode)
    if status.st_size > HASHED_BYTES_MAX:
        return Found(FileState(kind=FileKind.REGULAR, size_bytes=status.st_size, mode=mode), shown, status)
    kept = bytearray() if status.st_size <= KEPT_BYTES_MAX else None
    hashed, read = hashlib.sha256(), 0
    while chunk := os.read(file, min(_CHUNK_BYTES, status.st_size + 1 - read)):
        hashed.update(chunk)
        read += len(chunk)
        if kept is not None:
            kept += chunk
        if read > status.st_size:
            break
    if read != status.st_size or fingerprint(os.fstat(file)) != fingerprint(status):
        raise OSError(errno.EAGAIN, "it changes while it is read")
    if kept is not None:
        return Found(state_of(bytes(kept), mode), shown, status, bytes(kept))
    state = FileState(kind=FileKind.REGULAR, sha256=hashed.hexdigest(), size_bytes=read, mode=mode)
    return Found(state, shown, status)


def _encoding(content: bytes) -> Encoding:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Encoding.UTF_16
    try:
        content.decode()
    except UnicodeDecodeError:
        return Encoding.OTHER
    return Encoding.UTF_8_WITH_MARK if content.startswith(codecs.BOM_UTF8) else Encoding.UTF_8


def _line_ends(content: bytes) -> LineEnds:
    found = {_LINE_ENDS[end] for end in (b"\r\n", b"\r", b"\n") if end in content}
    if LineEnds.CRLF in found:
        found = {_LINE_ENDS[end] for end in set(_LINE_END.findall(content))}
    if not found:
        return LineEnds.NONE
    return found.pop() if len(found) == 1 else LineEnds.MIXED
