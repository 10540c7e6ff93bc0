"""Holding a folder for oneself by a lock that ends with its holders and leaves no trace. SPEC section 16."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from typing import Final

STEP_SECONDS: Final = 0.01
_HELD: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


@contextlib.contextmanager
def folder_lock(folder: str | os.PathLike[str], *, patience_seconds: float = 0.0) -> Iterator[int]:
    """Hold a folder until the end of the block; where this process is killed in it, until those have ended that were
    given the descriptor.

    Args:
        folder: is there.
        patience_seconds: how long another holder is waited for.

    Raises:
        TimeoutError: somebody else still holds it.
        OSError: it cannot be opened or held.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        end = time.monotonic() + patience_seconds
        while not _taken(descriptor):
            if time.monotonic() >= end:
                raise TimeoutError(errno.ETIMEDOUT, "another process works on it", os.fspath(folder))
            time.sleep(STEP_SECONDS)
        try:
            yield descriptor
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also of the copies that a fork made meanwhile
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
