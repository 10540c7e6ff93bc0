"""Room at the end of SQLite's log (the WAL), made before it is needed. ADR 0087.

To sync a file that grew, a file system writes its own journal as well, which takes as long again as syncing the bytes.
So zeros are put behind the log, for some commits at once, until it has the length that it has for good: SQLite writes
over them, and whoever reads a log stops at the first frame that is not its own. Writers that take turns see the zeros
that another has put there.
"""

from __future__ import annotations

import os
from pathlib import Path

_FRAME_HEADER_BYTES = 24
_FRAME_BYTES = _FRAME_HEADER_BYTES + 4096
_FRAMES_AT_ONCE = 64


class LogRoom:
    """What one connection knows of the room behind its log.

    Args:
        log: SQLite's file.
        pages: after so many it is written over from its beginning, so it needs no more room.
    """

    def __init__(self, log: Path, pages: int) -> None:
        self._path = str(log)
        self._bytes_max = pages * _FRAME_BYTES
        self._made_up_to = 0
        self._wanted = True
        self._length = 0

    def make(self) -> None:
        """Make room where SQLite has used up what there was. To be called while nobody else can write to the log, and
        where it was not cut.

        Where that is not possible (a full disk, a log of another name), nothing is lost but time.
        """
        if not self._wanted or self._length <= self._made_up_to:
            return
        try:
            self._length = self._made_up_to = self._extended(self._length)
        except OSError:
            self._wanted = False

    def is_cut(self) -> bool:
        """Look how long the log is; tell whether it is shorter than it was: SQLite cuts it off after a checkpoint
        alone, which changes what `again` and `forget_length` are called for.
        """
        try:
            length = os.stat(self._path).st_size  # noqa: PTH116
        except OSError:  # a log that was removed is still open, and goes on
            length = 0
        else:
            if length < self._length:
                return True
        self._length = length
        return False

    def forget_length(self) -> None:
        """Somebody else has written, who may have cut the log off before."""
        self._length = 0

    def again(self) -> None:
        """The log was cut off."""
        self._made_up_to, self._wanted, self._length = 0, True, 0

    def _extended(self, size: int) -> int:
        """Up to where there is room now: what another writer has made, or what is made here."""
        room = min(_FRAMES_AT_ONCE * _FRAME_BYTES, self._bytes_max - size)
        if room <= 0:
            self._wanted = False
            return size
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if _is_room(os.pread(descriptor, _FRAME_HEADER_BYTES, max(0, size - _FRAME_BYTES))):
                return size
            return size + os.pwrite(descriptor, bytes(room), size)
        finally:
            os.close(descriptor)


def _is_room(header: bytes) -> bool:
    """Whether the log's last frame is none: a frame begins with the number of its page, from 1."""
    return not any(header)
