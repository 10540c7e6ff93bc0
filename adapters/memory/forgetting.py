"""Forgetting sessions in memory."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.events.event import Timestamp
from ...domain.forgetting import FORGOTTEN_TOPIC, forgotten
from ...domain.identifiers import SessionId, run_stream, session_stream
from ...ports.session_forgetting import Forgotten, SessionForgetting
from .projections import MemoryProjections
from .tables import MemoryTables, require_writable


class MemoryForgetting(SessionForgetting):
    """Forgets sessions of one store in memory."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def forget(self, session_ids: Sequence[SessionId], *, by: str, at: Timestamp) -> Forgotten:
        """See `SessionForgetting`."""
        with self._tables.lock:
            require_writable(self._tables)
            records, admissions = self._tables.records, self._tables.admissions
            sessions = set(map(session_stream, session_ids))
            runs = [run_id for run_id, (_, row) in admissions.items() if records[row].stream in sessions]
            doomed = sessions | set(map(run_stream, runs))
            count = 0
            for row, record in enumerate(records):
                if record.stream in doomed and record.topic != FORGOTTEN_TOPIC:
                    left = forgotten(record.state, record.topic, by, at)
                    records[row] = record._replace(topic=FORGOTTEN_TOPIC, state=left)
                    count += 1
            MemoryProjections(self._tables).rebuild()
        return Forgotten(count, len(runs), log_emptied=True)
