# ruff: noqa: PTH105, PTH120 - pathlib doubles the start of the supervisor
"""The small file in which a supervisor writes down how far its operation got. SPEC section 15."""

from __future__ import annotations

import json
import os
import time


class StatusFile:
    """Replaced whole, durably, at each step; never holds arguments, output or environment."""

    def __init__(self, path: str, operation_id: str) -> None:
        self._path = path
        self._facts: dict[str, object] = {"operation_id": operation_id}

    def write(self, progress: str, **facts: object) -> None:
        """Write the facts so far and these; a full disk costs the note and nothing else, since the lock decides."""
        self._facts.update(facts, progress=progress)
        hidden = f"{self._path}.new"
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(descriptor, json.dumps(self._facts).encode("ascii") + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(hidden, self._path)
            folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError:
            return


def now() -> str:
    """UTC with microseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1000:06d}Z"
