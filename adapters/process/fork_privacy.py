"""Descriptors that a forked child must not keep: a worker with its parent's lock or pipe would hide its death.

Programs started by exec never get them (close-on-exec); a fork without exec, as multiprocessing makes, would. SPEC
section 15.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

_private: set[int] = set()
_turn = threading.RLock()  # held over a fork, so that no child is made between opening a descriptor and listing it


def open_private(opener: Callable[[], tuple[int, ...]]) -> tuple[int, ...]:
    """Call `opener`, which must not fork, and keep the descriptors that it returns from forked children."""
    with _turn:
        descriptors = opener()
        _private.update(descriptors)
        return descriptors


def close_private(descriptor: int) -> None:
    """Close such a descriptor; nothing happens when it is closed already, as it is in a forked child."""
    with _turn:
        if descriptor in _private:
            _private.discard(descriptor)
            os.close(descriptor)


def _in_child() -> None:
    # Closed, not unlocked: the lock belongs to the open file, which parent and child share.
    for descriptor in _private:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _private.clear()
    _turn.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_in_child)
