"""Work whose objects all stay until it is done, without Python's collector looking at them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Hold the collector back: a plan of 100,000 events would else take a sixth longer, a group of commands a quarter.

    It is the whole process's, so cycles of other threads wait, too: use it for work that ends by itself. Where two
    such works overlap, the first to end lets it go on; a host that has turned it off finds it off.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
