"""Removes what stands outside the store: checkpoints, and folders that were made from them. SPEC section 16."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ports.checkpoints import Checkpoints, Removed
from ..ports.isolated_folders import IsolatedFolders
from .run_checkpoints import why_not


def _ignore() -> None:
    """Nobody waits for it."""


class RemoveContent:
    """Removes one after the other; what is gone already is no error, and what cannot be removed is named.

    Args:
        after_each: called after each removal that was tried.

    Attributes:
        left: what could not be removed, with the reason.
    """

    def __init__(
        self, checkpoints: Checkpoints, isolated: IsolatedFolders, after_each: Callable[[], object] = _ignore
    ) -> None:
        self.left: list[tuple[str, str]] = []
        self._checkpoints = checkpoints
        self._isolated = isolated
        self._after_each = after_each

    def checkpoints(self, kept: Iterable[tuple[str, str]]) -> int:
        """Remove checkpoints; answers how many were there.

        Args:
            kept: the ref of each, and a folder by which it is reached.
        """
        removed = 0
        for ref, folder in kept:
            answer = self._checkpoints.remove(folder, ref)
            self._after_each()
            if isinstance(answer, Removed):
                removed += answer.was_there
            else:
                self.left.append((ref, why_not(answer)))
        return removed

    def folders(self, paths: Iterable[str]) -> int:
        """Remove folders that were made; answers how many are gone."""
        removed = 0
        for path in paths:
            try:
                self._isolated.remove(path)
                removed += 1
            except OSError as error:
                self.left.append((path, str(error)))
            self._after_each()
        return removed
