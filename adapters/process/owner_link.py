"""The supervisor's end of the pipes to its owner: JSON lines, bounded, never blocking. SPEC section 15."""

from __future__ import annotations

import json
import os
import select

LINE_BYTES_MAX = 16 * 1024 * 1024


class OwnerLink:
    """Two descriptors to the owner and, where the system has it, one that tells its death.

    The end of the pipe alone is not enough: a forked child of the owner may hold a copy of the other end.
    """

    def __init__(self, source: int, sink: int, owner_pid: int) -> None:
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        self._source = source
        self._sink = sink
        self._owner_pid = owner_pid
        self._received = bytearray()
        self._unsent = b""
        self.gone = False
        try:
            self._death: int | None = os.pidfd_open(owner_pid)
        except (AttributeError, OSError):
            self._death = None
        self._look_at_parent()  # after opening: if it still is our parent, the descriptor means the right process

    def register(self, poll: select.poll) -> None:
        """Wait for what may come from here."""
        if not self.gone:
            poll.register(self._source, select.POLLIN)
            if self._death is not None:
                poll.register(self._death, select.POLLIN)
            if self._unsent:
                poll.register(self._sink, select.POLLOUT)

    @property
    def recheck_seconds(self) -> float | None:
        """How often the owner must be looked at, where no descriptor tells its death."""
        return None if self.gone or self._death is not None else 1.0

    def receive(self, ready: dict[int, int]) -> list[dict[str, object]]:
        """Whole messages that have come in; notices the owner's death."""
        if self.gone:
            return []
        if self._source in ready:
            self._read()
        if (self._death is not None and self._death in ready) or (ready.get(self._sink, 0) & ~select.POLLOUT):
            self.gone = True
        self._look_at_parent()
        end = self._received.rfind(b"\n") + 1
        lines = bytes(self._received[:end])
        del self._received[:end]
        return [json.loads(line) for line in lines.splitlines()]

    def send(self, message: dict[str, object]) -> None:
        """Queue a message and send what fits."""
        self._unsent += json.dumps(message).encode("ascii") + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what fits; what is left waits for room."""
        while self._unsent and not self.gone:
            try:
                self._unsent = self._unsent[os.write(self._sink, self._unsent) :]
            except BlockingIOError:
                return
            except OSError:
                self.gone = True

    def flush_all(self) -> None:
        """Wait until everything is sent or the owner has gone; an owner that is stopped is waited for."""
        while self._unsent and not self.gone:
            poll = select.poll()
            self.register(poll)
            poll.unregister(self._source)
            ready = dict(poll.poll(1000))
            self.receive(ready)
            self.flush()

    def _read(self) -> None:
        try:
            chunk = os.read(self._source, 1024 * 1024)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._received += chunk
        if not chunk or len(self._received) > LINE_BYTES_MAX:
            self.gone = True

    def _look_at_parent(self) -> None:
        if os.getppid() != self._owner_pid:
            self.gone = True
