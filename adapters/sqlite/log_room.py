"""Room at the end of SQLite's log (the WAL), made before it is needed. ADR 0087.

To sync a file that grew, a file system writes its own journal as well, which takes as long again as syncing the bytes.
So zeros are put behind the log, for some commits at once, until it has the length that it has for good: SQLite writes
over them, and whoever reads a log stops at the first frame that is not its own.
"""

from __future__ import annotations

import os
from pathlib import Path

_FRAME_BYTES = 24 + 4096
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

    def make(self) -> None:
        """Make room where SQLite has used up what there was. To be called while nobody else can write to the log.

        Where that is not possible (a full disk, a log of another name), nothing is lost but time.
        """
        if not self._wanted:
            return
        try:
            size = os.stat(self._path).st_size  # noqa: PTH116
            if size > self._made_up_to:
                self._extend(size)
        except OSError:
            self._wanted = False

    def again(self) -> None:
        """The log was cut off."""
        self._made_up_to, self._wanted = 0, True

    def _extend(self, size: int) -> None:
        room = min(_FRAMES_AT_ONCE * _FRAME_BYTES, self._bytes_max - size)
        if room <= 0:
            self._wanted = False
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self._made_up_to = size + os.pwrite(descriptor, bytes(room), size)
        finally:
            os.close(descriptor)
