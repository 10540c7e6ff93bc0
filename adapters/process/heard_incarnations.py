"""A life that can be spoken to: whoever begins one here listens for commands of other processes from then on."""

from __future__ import annotations

from collections.abc import Callable

from ...ports.handover import Handler, Handover, HandoverUnavailable, Listener, Message
from ...ports.incarnations import HeldIncarnation, Incarnation, Incarnations, Liveness


class HeardIncarnations(Incarnations):
    """Begins lives, and opens an ear for each before it can own anything.

    Args:
        lives: begins and observes.
        handover: listens.
        handler: makes what answers, when the first request comes.

    Attributes:
        deaf: why commands of other processes cannot be heard, None while they can.
    """

    def __init__(self, lives: Incarnations, handover: Handover, handler: Callable[[], Handler]) -> None:
        self.deaf: str | None = None
        self._lives = lives
        self._handover = handover
        self._handler = handler
        self._listeners: list[Listener] = []

    def enter(self) -> HeldIncarnation:
        """Begin a life of this process. See the port."""
        held = self._lives.enter()
        try:
            self._listeners.append(self._handover.serve(held.incarnation, self._answer))
        except HandoverUnavailable as error:  # it can work nonetheless; a cancel from elsewhere finds it busy
            self.deaf = error.detail
        except BaseException:
            held.leave(keep_lock_file=False)
            raise
        return held

    def probe(self, incarnation: Incarnation) -> Liveness:
        """Look. See the port."""
        return self._lives.probe(incarnation)

    def end(self, incarnation: Incarnation, timeout_seconds: float) -> Liveness:
        """End another's life. See the port."""
        return self._lives.end(incarnation, timeout_seconds)

    def stop_hearing(self) -> None:
        """Close every ear; idempotent."""
        while self._listeners:
            self._listeners.pop().close()

    def _answer(self, message: Message) -> Message:
        return self._handler()(message)
