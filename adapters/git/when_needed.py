"""Checkpoints of Git that are imported, and their program started, only where there is a repository to look at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...ports.checkpoints import (
    Capture,
    CaptureLimits,
    Checkpoint,
    Checkpoints,
    Kept,
    Materialization,
    NotKept,
    Removed,
    Unsupported,
    Verification,
    WhyUnsupported,
)


class GitWhenNeeded(Checkpoints):
    """Answers for a folder without a repository by one look at the folders around it, where nobody insists.

    Args:
        make: makes what works with repositories; called when it is first needed.
    """

    def __init__(self, make: Callable[[], Checkpoints]) -> None:
        self._make = make

    def capture(self, folder: str, key: str, limits: CaptureLimits | None = None) -> Capture:
        """Capture; what is limited was not asked for, and is not tried where no repository is."""
        if limits is not None and not _is_in_repository(folder):
            return Unsupported(WhyUnsupported.NOT_A_REPOSITORY, f"{folder} is in no Git repository")
        return self._make().capture(folder, key, limits)

    def kept(self, folder: str) -> Kept | NotKept:
        """All checkpoints there."""
        return self._make().kept(folder)

    def verify(self, folder: str, checkpoint: Checkpoint) -> Verification:
        """Compare."""
        return self._make().verify(folder, checkpoint)

    def materialize(self, folder: str, checkpoint: Checkpoint, target: str) -> Materialization:
        """Write out."""
        return self._make().materialize(folder, checkpoint, target)

    def remove(self, folder: str, ref: str) -> Removed | NotKept:
        """Give up."""
        return self._make().remove(folder, ref)


def _is_in_repository(folder: str) -> bool:
    place = Path(os.path.realpath(folder))
    return any(os.path.lexists(around / ".git") for around in (place, *place.parents))
