"""The newest states that this process knows, kept between commands. SPEC section 7.

A cached state is only a shortcut: the store refuses whatever was decided on one that had been overtaken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from ..domain.identifiers import SessionId
from ..ports.event_store import EventReader
from .states import Head, Read, load


class StateCache:
    """Durable heads by stream, least recently used first out.

    Only `peek` may be called by a thread that does not hold the writer's lock.

    Args:
        streams_max: how many are kept, 1 or more.
    """

    def __init__(self, streams_max: int) -> None:
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._outdated: set[str] = set()
        self._of_session: dict[SessionId, set[str]] = {}
        self._streams_max = streams_max

    def peek(self, stream: str) -> Head | None:
        """The cached head of a stream, None where it must be read."""
        return None if stream in self._outdated else self._heads.get(stream)

    def get(self, stream: str, read: Read) -> Head:
        """The head of a stream: cached, or read from where the cached one ends."""
        known = self._heads.get(stream)
        if known is not None:
            self._heads.move_to_end(stream)
            if stream not in self._outdated:
                return known
        found: list[Head] = []
        read(lambda reader: found.append(load(reader, stream, known)))
        self.put(stream, found[0])
        return found[0]

    def put(self, stream: str, head: Head) -> None:
        """Keep a durable head. A stream without events is always read: anybody may be the first to write it."""
        heads = self._heads
        if stream in heads:
            heads[stream] = head  # it was used just now, so it stands where it must
            self._outdated.discard(stream)
            return
        session_id = head.session_id
        if session_id is None:
            return
        self._of_session.setdefault(session_id, set()).add(stream)
        heads[stream] = head
        self._outdated.discard(stream)
        while len(heads) > self._streams_max:
            self._drop(next(iter(self._heads)))

    def outdate(self, streams: Iterable[str]) -> None:
        """Read what follows the cached heads of these streams before they are used again."""
        self._outdated.update(stream for stream in streams if stream in self._heads)

    def refresh(self, streams: Iterable[str], reader: EventReader) -> bool:
        """Bring cached streams up to the store; True when one had been behind."""
        moved = False
        for stream in streams:
            before = self._heads.get(stream)
            if before is not None and (after := load(reader, stream, before)) is not before:
                self.put(stream, after)
                moved = True
        return moved

    def forget(self, session_id: SessionId) -> None:
        """Drop all that is known of a session: somebody else may have written it."""
        for stream in tuple(self._of_session.get(session_id, ())):
            self._drop(stream)

    def clear(self) -> None:
        """Forget everything, after a commit whose outcome is unknown."""
        self._heads.clear()
        self._outdated.clear()
        self._of_session.clear()

    def _drop(self, stream: str) -> None:
        head = self._heads.pop(stream)
        self._outdated.discard(stream)
        if head.session_id is not None:
            streams = self._of_session[head.session_id]
            streams.discard(stream)
            if not streams:
                del self._of_session[head.session_id]
