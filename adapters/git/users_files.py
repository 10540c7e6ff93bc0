"""Files of the user's that Git reads, such as those of exclusions and attributes."""

from __future__ import annotations

import os
from pathlib import Path


def content_of(file: str | bytes) -> bytes:
    """What a file says; nothing where there is no such file.

    Raises:
        OSError: it could not be read.
    """
    try:
        return Path(os.fsdecode(file)).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""
