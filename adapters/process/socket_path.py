"""Addresses of Unix sockets whose path is longer than an address may be (107 bytes on Linux)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ADDRESS_BYTES_MAX = 103  # macOS; Linux takes 107


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address that means `path` while the block runs.

    Raises:
        OSError: the folder is not there, or the path is too long on a platform that has no short cut to an open folder.
    """
    if len(os.fsencode(path)) <= ADDRESS_BYTES_MAX:
        yield str(path)
        return
    here: str = sys.platform
    if not here.startswith("linux"):
        raise OSError(f"the path of the socket is longer than {ADDRESS_BYTES_MAX} bytes: {path}")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
