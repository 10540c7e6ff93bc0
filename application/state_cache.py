"""The newest states that this process knows, kept between commands. SPEC section 7.

A cached state is only a shortcut: the store refuses whatever was decided on one that had been overtaken.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from ..domain.identifiers import SessionId
from ..domain.run.state import Run
from ..domain.session.state import Session
from ..ports.event_store import EventReader
from .states import Head, Read, load


class StateCache:
    """Heads by stream, least recently used first out.

    Only `shown` may be called by a thread that does not hold the writer's lock.

    Args:
        streams_max: how many are kept between groups of commands, 1 or more.
    """

    def __init__(self, streams_max: int) -> None:
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._of_session: dict[SessionId, set[str]] = {}
        self._streams_max = streams_max
        self._holding = threading.Lock()

    def shown(self, stream: str) -> Session | Run | None:
        """The state of a stream as it is durable, which is not changed any more; None where the writer knows more."""
        with self._holding:
            head = self._heads.get(stream)
            return None if head is None or head.moving else head.shown()

    def hold(self, head: Head) -> None:
        """Show a head to nobody, until it is let go: it is about to move."""
        with self._holding:
            head.moving = True

    def get(self, stream: str, read: Read) -> Head:
        """The head of a stream: cached, or read."""
        known = self._heads.get(stream)
        if known is not None:
            self._heads.move_to_end(stream)
            return known
        found: list[Head] = []
        read(lambda reader: found.append(load(reader, stream)))
        self.put(found[0])
        return found[0]

    def put(self, head: Head) -> None:
        """Keep a head. A stream without events is always read: anybody may be the first to write it."""
        session_id = head.session_id
        if session_id is not None:
            self._of_session.setdefault(session_id, set()).add(head.stream)
            self._heads[head.stream] = head

    def trim(self) -> None:
        """Forget those that were not used for longest, where there are too many: between groups."""
        while len(self._heads) > self._streams_max:
            self.drop(next(iter(self._heads)))

    def refresh(self, heads: Iterable[tuple[str, int]], reader: EventReader) -> bool:
        """Bring streams up to the store; True when one is not where it was taken to be.

        Args:
            heads: the streams, and after how many events each was looked at.
        """
        behind = [self._behind(stream, sequence, reader) for stream, sequence in heads]  # all of them
        return any(behind)

    def _behind(self, stream: str, sequence: int, reader: EventReader) -> bool:
        head = self._heads.get(stream)
        if head is None:
            head = load(reader, stream)
            self.put(head)
            return head.sequence != sequence
        before = head.sequence
        self.hold(head)
        try:
            load(reader, stream, head)
        finally:
            head.moving = False
        return head.sequence != before

    def forget(self, session_id: SessionId) -> None:
        """Drop all that is known of a session: somebody else may have written it."""
        for stream in tuple(self._of_session.get(session_id, ())):
            self.drop(stream)

    def clear(self) -> None:
        """Forget everything, after a commit whose outcome is unknown."""
        self._heads.clear()
        self._of_session.clear()

    def drop(self, stream: str) -> None:
        """Read a stream anew before it is used again."""
        head = self._heads.pop(stream, None)
        if head is not None and head.session_id is not None:
            streams = self._of_session[head.session_id]
            streams.discard(stream)
            if not streams:
                del self._of_session[head.session_id]
