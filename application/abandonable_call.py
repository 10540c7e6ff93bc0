"""A blocking call that nobody has to wait for: it runs on a daemon thread, which cannot keep the process from ending.

Python cannot end a thread. A call that is given up goes on, and may say how it ended to somebody else.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

ResultT = TypeVar("ResultT")

EVENT_LOOP_NAME = "current_async_library_cvar"
"""The context variable that tells which event loop a task runs on; a thread runs on none."""


class Returned(NamedTuple, Generic[ResultT]):
    """The call came back with this."""

    value: ResultT


class Raised(NamedTuple):
    """The call raised this, whatever it is."""

    error: BaseException


Ended: TypeAlias = Returned[ResultT] | Raised


class AbandonableCall(Generic[ResultT]):
    """One call on a thread of its own; made, started and awaited on one event loop.

    Args:
        work: gets the context variables of whoever starts it.
        name: of the thread, for people.
    """

    def __init__(self, work: Callable[[], ResultT], name: str) -> None:
        self._work = work
        self._name = name
        self._ended: Ended[ResultT] | None = None
        self._then: Callable[[Ended[ResultT]], None] | None = None
        self._lock = threading.Lock()
        self._done = anyio.Event()
        self._token = current_token()

    @property
    def ended(self) -> Ended[ResultT] | None:
        """How it ended, None while it runs."""
        return self._ended

    def start(self) -> bool:
        """Begin at once; False when the system has no room for another thread, so that nothing was begun."""
        context = contextvars.copy_context()
        for variable in list(context):
            if variable.name == EVENT_LOOP_NAME:
                context.run(variable.set, None)
        thread = threading.Thread(target=context.run, args=(self._run,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        return True

    async def finished(self) -> None:
        """Wait for the end; a cancelled wait leaves the call alone, and may be begun again."""
        await self._done.wait()

    async def ended_within(self, seconds: float) -> Ended[ResultT] | None:
        """Begin, and wait at most so long, whatever else happens; None when it was given up, or could not begin."""
        if self.start():
            with anyio.move_on_after(seconds, shield=True):
                await self.finished()
            self.give_up()
        return self._ended

    def give_up(self, then: Callable[[Ended[ResultT]], None] = lambda ended: None) -> bool:
        """Stop caring; False when it has ended already.

        Args:
            then: called once, from the thread, when it ends after all; must not raise.
        """
        with self._lock:
            if self._ended is not None:
                return False
            self._then = then
            return True

    def _run(self) -> None:
        ended = outcome(self._work)
        with self._lock:
            self._ended = ended
            then = self._then
        if then is not None:
            then(ended)
            return
        try:
            from_thread.run_sync(self._done.set, token=self._token)
        except RuntimeError:
            return  # the event loop is gone, and with it whoever waited


def joined(work: Callable[[], ResultT], seconds: float) -> Ended[ResultT] | None:
    """Make a blocking call from a thread that is no event loop's; None when it took longer than this."""
    ended: list[Ended[ResultT]] = []

    def run() -> None:
        ended.append(outcome(work))

    thread = threading.Thread(target=run, name="safepoint late", daemon=True)
    thread.start()
    thread.join(seconds)
    return ended[0] if ended else None


def outcome(work: Callable[[], ResultT]) -> Ended[ResultT]:
    """Call it, and say how it ended, whatever it raises."""
    try:
        return Returned(work())
    except BaseException as error:  # noqa: BLE001 (whatever it raises is how it ended)
        return Raised(error)
