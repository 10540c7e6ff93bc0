"""Where lock files, sockets and status files stand: `<store>.locks/`. SPEC section 15."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_SAFE = re.compile(r"[a-z0-9_][a-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class LocksFolder:
    """Names the files of an id; ids may hold any character, file names may not."""

    path: Path

    def make(self) -> None:
        """Make the folder, for its user alone, if it is not there."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def lock(self, owner_id: str) -> Path:
        """The lock file of an incarnation or operation."""
        return self.path / f"{_stem(owner_id)}.lock"

    def socket(self, owner_id: str) -> Path:
        """The socket of an incarnation."""
        return self.path / f"{_stem(owner_id)}.sock"

    def status(self, owner_id: str) -> Path:
        """The status file of an operation."""
        return self.path / f"{_stem(owner_id)}.status"


def _stem(owner_id: str) -> str:
    """The id where that is a safe name on every file system, else its digest behind a sign that no safe name has."""
    return owner_id if _SAFE.fullmatch(owner_id) else "~" + hashlib.sha256(owner_id.encode("utf-8")).hexdigest()
