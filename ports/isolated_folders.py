"""The folders that were made from checkpoints for runs to go on in. SPEC section 16, *Drift*."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..domain.events.event import Timestamp


class IsolatedFolder(NamedTuple):
    """One of them, finished or not; `path` is absolute, without links."""

    path: str
    made_at: Timestamp


class IsolatedFolders(Protocol):
    """Makes names for new ones, lists and removes them; who needs one, others decide."""

    @abstractmethod
    def new(self) -> str:
        """A path for a new one; its parent is there, and nothing is at the path."""

    @abstractmethod
    def folders(self) -> Sequence[IsolatedFolder]:
        """All that are there, by path; what a killed process left half made or half removed is among them.

        Raises:
            OSError: could not look.
        """

    @abstractmethod
    def holds(self, path: str) -> bool:
        """Whether a path, absolute and without links, is that of one of them."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove one with all that it holds; nothing happens where it is gone. Killed on the way, it can be repeated.

        Raises:
            ValueError: it is none of these folders.
            OSError: something of it is still there.
        """
