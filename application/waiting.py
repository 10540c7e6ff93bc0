"""Waits for one implementation: within its time-out, and after a stop within the bound for live work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum

import anyio

from ..domain.events.tool import Effect
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..domain.tool_results import PreparedResult
from ..ports.tool_catalog import BoundCall, OutcomeNotSeen
from .stopping import Stopping


class NotOver(Exception):
    """An implementation did not end when it had to; nothing can be said of its effect or of its end."""


def tell_when_over(error: NotOver, tell: Callable[[], None]) -> None:
    """Have somebody told once nothing of the work can run any more, where it can be known: ADR 0075."""
    cause = error.__cause__
    if isinstance(cause, OutcomeNotSeen) and cause.when_over is not None:
        cause.when_over(tell)


class Waited(Enum):
    """How the waiting ended."""

    ENDED = "ended"
    TIME_IS_UP = "time_is_up"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    """The task that waited is being cancelled: what is known is recorded, and then it goes."""


async def wait(stopping: Stopping, bound: BoundCall, finished: Callable[[], Awaitable[None]]) -> Waited:
    """Wait; a cancellation of the task ends the waiting here, and shows again at the task's next checkpoint."""
    scope = stopping.after_bound(bound.timeout_seconds)
    try:
        with scope:
            await finished()
    except anyio.get_cancelled_exc_class():
        return Waited.INTERRUPTED
    finally:
        stopping.done(scope)
    if not scope.cancelled_caught:
        return Waited.ENDED
    return Waited.STOPPED if stopping.is_set() else Waited.TIME_IS_UP


def ended_early(stopping: Stopping, bound: BoundCall, waited: Waited) -> PreparedResult:
    """Prepare the answer for work that was ended, or left alone, before it was done."""
    if waited is Waited.TIME_IS_UP:
        return bound.timed_out()
    if bound.needs_permission:
        said, effect = SentenceId.TOOL_CANCELLED, Effect.UNKNOWN
    else:
        said, effect = SentenceId.TOOL_CANCELLED_WITHOUT_EFFECT, Effect.NONE
    text = render(said, {"by": stopping.by})
    return PreparedResult(text, is_error=True, effect=effect, code=ResponseCode.TOOL_TIMED_OUT)
