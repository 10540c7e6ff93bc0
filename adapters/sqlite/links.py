"""Whether sealed events continue the chain that is stored, so that no commit can break it. SPEC section 6.

A commit that was sealed after an event which lost its place may still fit by its version: only its digest tells.
"""

from __future__ import annotations

import sqlite3

from ...domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, digest_of
from ...ports.event_store import Commit

_STREAMS_KNOWN_MAX = 4096
_STATE = "SELECT state FROM stored_events WHERE originator_id = ? AND originator_version = ?"


class Links:
    """Digests of events that one connection knows to be stored; they never change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}
        self._pending: dict[str, tuple[int, str]] = {}

    def broken(self, cursor: sqlite3.Cursor, commit: Commit) -> str | None:
        """The stream in which a commit does not continue the chain, or None when it does in all.

        Args:
            cursor: reads the state that the commit would be added to.
            commit: its events stand in the order of their streams.
        """
        if len(commit.events) == 1:  # T1 and T2, above all
            (sealed,) = commit.events
            stream, sequence, _, _, _, previous_digest = sealed
            if (self._pending.get(stream) or self._known.get(stream)) == (sequence - 1, previous_digest):
                return None
            return None if previous_digest == self._digest_before(cursor, sealed) else stream
        within: dict[str, tuple[int, str]] = {}
        for sealed in commit.events:
            at = within.get(sealed.stream)
            if sealed.previous_digest != (at[1] if at is not None else self._digest_before(cursor, sealed)):
                return sealed.stream
            within[sealed.stream] = (sealed.sequence, sealed.digest)
        return None

    def add(self, commit: Commit) -> None:
        """Remember a commit of the present transaction."""
        for sealed in commit.events:
            self._pending[sealed.stream] = (sealed.sequence, sealed.digest)

    def settle(self) -> None:
        """What was added became durable."""
        if len(self._known) > _STREAMS_KNOWN_MAX:
            self._known.clear()
        self._known.update(self._pending)
        self._pending.clear()

    def undo(self) -> None:
        """What was added did not become durable."""
        self._pending.clear()

    def _digest_before(self, cursor: sqlite3.Cursor, sealed: SealedEvent) -> str | None:
        version = sealed.sequence - 1
        if version < 1:
            return FIRST_PREVIOUS_DIGEST
        stream = sealed.stream
        at = self._pending.get(stream) or self._known.get(stream)
        if at is not None and at[0] == version:
            return at[1]
        row = cursor.execute(_STATE, (sealed.stream, version)).fetchone()
        return digest_of(row[0]) if row is not None and isinstance(row[0], bytes) else None
