"""How far a store has come: how many events it keeps, and one digest over all of them in their order. SPEC section 6.

Rows of the events table have no gaps, so the newest row number is the commit counter, and every transaction raises it.
The digest is written down with each, as a control row, so that a damaged event never makes a whole store disagree with
its anchor. The newest are kept, and a few older ones: from the last before it, the digest that an old anchor names is
worked out by hashing the events since.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from ...domain import canonical
from ...domain.errors import StoreUnreadable
from ...domain.forgetting import kept_digest

COMMIT_DOMAIN = "safepoint.commit.v1"
FIRST_DIGEST = "0" * 64
ROWS_KEPT = 1_000
"""How far back every transaction's row stays; of the older ones, those whose counter `TRIMMED_EVERY` divides."""
TRIMMED_EVERY = 64

_DOMAIN_PREFIX = canonical.domain_prefix(COMMIT_DOMAIN)
_NEWEST = "SELECT COALESCE(MAX(rowid), 0) FROM stored_events"
_BASE = "SELECT counter, digest FROM commits WHERE counter <= ? ORDER BY counter DESC LIMIT 1"
_SINCE = "SELECT state FROM stored_events WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
_ALL = "SELECT counter, digest FROM commits ORDER BY counter"
INSERT = "INSERT INTO commits VALUES (?, ?)"
TRIM = f"DELETE FROM commits WHERE counter BETWEEN ? AND ? AND counter % {TRIMMED_EVERY} != 0"


class Position(NamedTuple):
    """A point in a store's life."""

    counter: int
    digest: str

    def after(self, *event_digests: str) -> Position:
        """The point after more events, in their order."""
        digest = self.digest
        for event_digest in event_digests:
            digest = sha256(_DOMAIN_PREFIX + (digest + event_digest).encode()).hexdigest()
        return Position(self.counter + len(event_digests), digest)


FIRST = Position(0, FIRST_DIGEST)


def newest(cursor: sqlite3.Cursor | sqlite3.Connection) -> int:
    """The commit counter, in the present transaction."""
    (counter,) = cursor.execute(_NEWEST).fetchone()
    return int(counter)


def position_at(cursor: sqlite3.Cursor | sqlite3.Connection, counter: int, known: Position | None = None) -> Position:
    """The point at which the store had kept so many events.

    Args:
        cursor: reads the store, in the present transaction.
        counter: not more than `newest`.
        known: a point that this connection has seen, if any.
    """
    if known is not None and known.counter == counter:
        return known
    if known is None or known.counter > counter:
        row = cursor.execute(_BASE, (counter,)).fetchone()
        if row is None:
            raise StoreUnreadable("the control rows of the commits are missing")
        if tuple(map(type, row)) != (int, str):
            raise StoreUnreadable("a control row of the commits is damaged")
        known = Position(*row)
    for (state,) in cursor.execute(_SINCE, (known.counter, counter)):
        known = known.after(kept_digest(state if isinstance(state, bytes) else b""))
    return known


def faults_of_positions(connection: sqlite3.Connection) -> Iterator[str]:
    """Kept positions that are not what the events since the position before them make."""
    at = FIRST
    for row in connection.execute(_ALL):
        if tuple(map(type, row)) != (int, str):
            yield "a kept position is not what was written"
            return
        position = Position(*row)
        if position != _after_events(connection, at, position.counter):
            yield f"position {position.counter} is not what the events up to it make"
        at = position
    if at.counter != newest(connection):
        yield f"the last position is {at.counter}, and not that of the last event"


def _after_events(connection: sqlite3.Connection, at: Position, counter: int) -> Position | None:
    for (state,) in connection.execute(_SINCE, (at.counter, counter)):
        if not isinstance(state, bytes):
            return None
        at = at.after(kept_digest(state))
    return at
