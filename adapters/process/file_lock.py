"""Advisory locks on files, the proof of life. SPEC section 15.

An exclusive `flock` is held by whoever lives; observers try a shared one and let it go at once, so that they do not
disturb one another. Standard library only: the supervisor program imports this without its package.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

if sys.platform != "win32":
    import fcntl

CONTENT_BYTES_MAX = 64 * 1024
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class LockLook:
    """What an observer saw: is the lock held, what the file says, and which file it is."""

    __slots__ = ("content", "held", "inode")

    def __init__(self, held: bool, content: bytes, inode: int) -> None:
        self.held = held
        self.content = content
        self.inode = inode


def try_lock(descriptor: int, *, shared: bool) -> bool:
    """Take the lock without waiting; False when somebody else's lock excludes it.

    Raises:
        OSError: it cannot be told (locks are not supported here, or there is no room for more).
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "this platform has no flock")
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    """Release the lock for every duplicate of the descriptor, also one that a fork has copied meanwhile."""
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def look(path: str) -> LockLook:
    """Observe the lock on `path`.

    Raises:
        OSError: could not look; FileNotFoundError also when the file was removed in this moment.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        held = not try_lock(descriptor, shared=True)
        facts = os.fstat(descriptor)
        content = os.pread(descriptor, CONTENT_BYTES_MAX, 0)
        if not held:
            unlock(descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink == 0:
        raise FileNotFoundError(errno.ENOENT, "the lock file is gone", path)
    return LockLook(held, content, facts.st_ino)


def take(path: str, patience_seconds: float) -> int | None:
    """Open or make `path` with mode 0600 and lock it exclusively; None when others keep it from us.

    Args:
        patience_seconds: how long to try again, since an observer may hold it for a moment.

    Returns:
        The descriptor that holds the lock; it is not inherited by other programs.

    Raises:
        OSError: the file cannot be made or locked.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            if try_lock(descriptor, shared=False) and names(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.01)


def names(path: str, descriptor: int) -> bool:
    """Whether `path` still is the file behind `descriptor`, and not one that took its place."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def write_content(descriptor: int, content: bytes) -> None:
    """Replace what the locked file says."""
    os.pwrite(descriptor, content, 0)
    os.ftruncate(descriptor, len(content))
