"""What the body of a tool may know of its call where nobody hands it a context. SPEC section 8."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ..ports.tool_catalog import ToolContext

_CALL: Final[ContextVar[ToolContext | None]] = ContextVar("safepoint call", default=None)


def current_call() -> ToolContext | None:
    """What the body of a tool may know of its call, such as `idempotency_key`; None outside of one."""
    return _CALL.get()


@contextmanager
def handed(context: ToolContext) -> Iterator[None]:
    """Let the body of a tool find its call."""
    token = _CALL.set(context)
    try:
        yield
    finally:
        _CALL.reset(token)
