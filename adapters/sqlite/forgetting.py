"""Forgetting sessions in SQLite: tombstones in the place of events, and the old bytes overwritten. SPEC section 16.

The rules against changing events are taken away and made again inside the one transaction that needs it, so that they
hold for everybody else at every moment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from ...domain.errors import StoreUnavailable
from ...domain.events.event import Timestamp
from ...domain.forgetting import FORGOTTEN_TOPIC, forgotten
from ...domain.identifiers import RunId, SessionId, run_stream, session_stream
from ...ports.session_forgetting import Forgotten, SessionForgetting
from . import schema
from .place import Place
from .projections import rebuild_in
from .transaction import Transaction
from .writer import Writer

_RULES: Final = """SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'stored_events'
    AND sql LIKE '%UPDATE ON stored_events%'"""
_RUNS: Final = "SELECT run_id FROM admissions WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY run_id"
_EVENTS: Final = f"""SELECT originator_version, topic, state FROM stored_events
    WHERE originator_id = ? AND originator_version > ? AND topic <> '{FORGOTTEN_TOPIC}'
    ORDER BY originator_version LIMIT 200"""
_FORGET: Final = "UPDATE stored_events SET topic = ?, state = ? WHERE originator_id = ? AND originator_version = ?"


class SqliteForgetting(SessionForgetting):
    """Forgets sessions of one store.

    Args:
        writer: begins transactions; None where the store was opened for reading.
    """

    def __init__(self, place: Place, writer: Writer | None) -> None:
        self._place = place
        self._writer = writer

    def forget(self, session_ids: Sequence[SessionId], *, by: str, at: Timestamp) -> Forgotten:
        """See `SessionForgetting`. Pages that are given up are overwritten, and the log is emptied after it."""
        if self._writer is None:
            raise StoreUnavailable("the store was opened for reading")
        with self._writer.overwriting(), Transaction(self._writer) as transaction:
            raw = transaction.raw
            runs = [RunId(row[0]) for row in raw.execute(_RUNS, (json.dumps(list(session_ids)),))]
            streams = [*map(session_stream, session_ids), *map(run_stream, runs)]
            rules = raw.execute(_RULES).fetchall()
            for name, _ in rules:
                transaction.execute(f"DROP TRIGGER {name}")
            events = sum(_forget_stream(transaction, stream, by, at) for stream in streams)
            for _, rule in rules:
                transaction.execute(rule)
            schema.require_store(raw.connection, self._place.database)
            rebuild_in(transaction)
        return Forgotten(events, len(runs), self._writer.empty_log())


def _forget_stream(transaction: Transaction, stream: str, by: str, at: Timestamp) -> int:
    count, version = 0, 0
    while rows := transaction.raw.execute(_EVENTS, (stream, version)).fetchall():
        for version, topic, state in rows:
            left = forgotten(_bytes_of(state), str(topic), by, at)
            transaction.execute(_FORGET, (FORGOTTEN_TOPIC, left, stream, version))
            count += 1
    return count


def _bytes_of(state: object) -> bytes:
    """Damage may have made anything of a column."""
    return state if isinstance(state, bytes) else b""
