"""A runtime belongs to the process that opened it: a fork has neither its threads nor its locks. SPEC section 15."""

from __future__ import annotations

import os
from typing import Final

from ...domain.errors import SafepointError


class OpenedBeforeFork(SafepointError):
    """A runtime is used in a fork of the process that opened it: nothing was done, and the parent goes on."""

    def __init__(self) -> None:
        super().__init__(
            "this runtime was opened before the process was forked, so its threads and locks are the parent's alone:"
            " open the store again in the child, with sessions of its own, or start the child by 'spawn'"
        )


class _Forks:
    """How many forks lie between this process and the one that imported this."""

    def __init__(self) -> None:
        self.count = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1


_FORKS: Final = _Forks()


class OwnProcess:
    """Knows the process in which it was made."""

    __slots__ = ("_forks",)

    def __init__(self) -> None:
        self._forks = _FORKS.count

    @property
    def is_this(self) -> bool:
        """False in a fork."""
        return self._forks == _FORKS.count

    def check(self) -> None:
        """Do nothing but in a fork.

        Raises:
            OpenedBeforeFork: this is one.
        """
        if self._forks != _FORKS.count:
            raise OpenedBeforeFork
