"""When a file was made, asked by its path: opening and closing a database would drop SQLite's own locks on it."""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_BYTES = 256
_BIRTH_AT = 80  # of `struct statx`: seconds as 64 bits, then nanoseconds as 32
_MASK = struct.Struct("=I")
_TIME = struct.Struct("=qI")


def birth_of(file: Path) -> str | None:
    """The time at which a file was made, as text; None where the file system or the platform does not tell it."""
    statx = _statx()
    if statx is None:
        born = getattr(file.stat(), "st_birthtime", None)  # macOS
        return None if born is None else repr(born)
    told = ctypes.create_string_buffer(_BYTES)
    if statx(_AT_FDCWD, os.fsencode(file), 0, _STATX_BTIME, told) != 0:
        return None
    if not _MASK.unpack_from(told.raw)[0] & _STATX_BTIME:
        return None
    seconds, nanoseconds = _TIME.unpack_from(told.raw, _BIRTH_AT)
    return f"{seconds}.{nanoseconds:09d}"


@cache
def _statx() -> Any:
    try:
        return ctypes.CDLL(None).statx
    except (AttributeError, OSError):
        return None
