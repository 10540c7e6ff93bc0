"""What a cancellation says of the body of a framework's tool. SPEC section 15, ADR 0083."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anyio import get_cancelled_exc_class

from ...application.open_call import OpenCall


@contextmanager
def ends_when_cancelled(operation: OpenCall, *, asynchronous: bool) -> Iterator[None]:
    """Say that nothing of a call runs any more, once the cancellation of its body comes back out of it.

    Its outcome stays unknown. Of a body that is not asynchronous a thread may be left, which nobody can end: it counts
    as running until the process ends.

    Args:
        asynchronous: the function itself is; what it starts and does not await is its own affair, as in our own loop.
    """
    try:
        yield
    except get_cancelled_exc_class():
        if asynchronous:
            operation.over()
        raise
