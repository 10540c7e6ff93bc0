"""Lists and pages, read from the projections. SPEC sections 7 and 17."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from ...domain.errors import StoreDamaged, ViewsDamaged
from ...domain.events.session import RunKind
from ...domain.events.tool import ToolDispatched
from ...domain.identifiers import OperationId, RequestId, RunId, SessionId, run_stream
from ...domain.unique_ids import IdKind
from ...ports.views import (
    PAGE_MAX,
    ContinuationRow,
    Kinship,
    OperationKey,
    OperationRow,
    PermissionRow,
    RunRow,
    SessionKey,
    SessionRow,
    Views,
)
from .errors import readable, translated
from .operation_view import OUTCOMES, columns
from .place import Place
from .projection_tables import NEWEST_AT, OPEN_PERMISSION, OPEN_RUN, WATCHED, are_as_expected
from .reader import Readers
from .stored_fields import field_of

_RUN = f"SELECT {', '.join(RunRow._fields)} FROM runs"
_OPERATION = f"SELECT {', '.join(OperationRow._fields)} FROM operations"
_PERMISSION = f"SELECT {', '.join(PermissionRow._fields)} FROM permissions"
_CONTINUATION = f"SELECT {', '.join(ContinuationRow._fields)} FROM continuations"
_IN_DOUBT = """o.watched IS NULL AND o.cleared_by IS NULL AND (o.outcome_event_id IS NULL
    OR (o.effect = 'unknown' AND o.attestation IS NOT 'completed' AND o.attestation IS NOT 'not_executed'))"""
_DISPATCHED = field_of("operation_id", "e.state")
_OF_HEAD = f"""FROM runs h
    JOIN stored_events e ON e.originator_id = 'run:' || h.run_id AND e.topic = '{ToolDispatched.topic}'
    LEFT JOIN {OUTCOMES} o ON o.operation_id = {_DISPATCHED}
    WHERE h.run_id = s.head_run_id AND h.abandoned_by IS NULL AND h.claimed_by_claim_id IS NULL
    AND h.status IS NOT 'completed' AND {_IN_DOUBT}"""
"""Operations in doubt of the head run of session `s`; from its end on, its session watches most of them."""
_SESSION = f"""SELECT s.session_id, s.opened_at, s.head_run_id, s.head_kind, s.head_admitted_at,
    r.status, r.failure_class, r.ended_at, r.abandoned_by, r.incarnation_id,
    (SELECT COUNT(*) FROM {OUTCOMES} WHERE session_id = s.session_id AND {WATCHED}) + (SELECT COUNT(*) {_OF_HEAD})
    FROM sessions s LEFT JOIN runs r ON r.run_id = s.head_run_id"""
_KINSHIP = f"""SELECT s.session_id, s.head_kind = '{RunKind.CONTINUATION}' AND r.opened_event_id IS NULL,
    (SELECT p.session_id FROM runs p WHERE p.run_id = (
        SELECT parent_run_id FROM runs WHERE session_id = s.session_id ORDER BY admitted_sequence LIMIT 1))
    FROM json_each(?) asked JOIN sessions s ON s.session_id = asked.value
    LEFT JOIN runs r ON r.run_id = s.head_run_id"""
_FOLDERS = """WITH RECURSIVE found (cwd) AS (
        SELECT min(cwd) FROM runs WHERE workspace_identity = ? AND cwd IS NOT NULL
        UNION ALL
        SELECT (SELECT min(cwd) FROM runs WHERE workspace_identity = ? AND cwd > found.cwd)
        FROM found WHERE found.cwd IS NOT NULL)
    SELECT cwd FROM found WHERE cwd IS NOT NULL LIMIT ?"""
_CHILDREN = """SELECT DISTINCT c.session_id FROM runs p
    JOIN runs c ON c.parent_run_id IS NOT NULL AND c.parent_run_id = p.run_id
    WHERE p.session_id = ? AND c.session_id > ? ORDER BY c.session_id LIMIT ?"""
_UNSETTLED = f"""SELECT {columns("o.operation_id", "o.session_id")} FROM {OUTCOMES} o
    LEFT JOIN unique_ids u ON u.id = o.operation_id AND u.kind = '{IdKind.OPERATION}'
    LEFT JOIN stored_events e ON e.rowid = u.event
    WHERE {WATCHED} AND {{of_watched}}
    UNION ALL SELECT {columns(_DISPATCHED, "s.session_id")} FROM sessions s CROSS {_OF_HEAD.replace("FROM", "JOIN", 1)}
    AND {{of_head}}
    ORDER BY session_id, operation_id LIMIT ?"""
"""Both halves come in order, session by session, and are merged: a page reads the head runs of the sessions that stand
on it, and none before or behind them.
"""
_NEWEST = NEWEST_AT.replace("head_admitted_at", "s.head_admitted_at").replace("opened_at", "s.opened_at")
_NEWEST_FIRST = f"ORDER BY {_NEWEST} DESC, s.session_id DESC LIMIT ?"
_OPERATIONS_OF_RUN = f"""SELECT {columns(_DISPATCHED, field_of("session_id", "e.state"))}
    FROM stored_events e LEFT JOIN {OUTCOMES} o ON o.operation_id = {_DISPATCHED}
    WHERE e.originator_id = ? AND e.originator_version > ? AND e.topic = '{ToolDispatched.topic}'
    ORDER BY e.originator_version LIMIT ?"""


class SqliteViews(Views):
    """The views of one store; thread-safe.

    Args:
        place: the store's files.
        readers: hands out consistent views.
    """

    def __init__(self, place: Place, readers: Readers) -> None:
        self._place = place
        self._readers = readers

    def sessions(self, *, after: SessionKey | None = None, limit: int = 50) -> Sequence[SessionRow]:
        """See `SessionViews`."""
        where = "" if after is None else f"WHERE ({_NEWEST}, s.session_id) < (?, ?)"
        found = self._rows(f"{_SESSION} {where} {_NEWEST_FIRST}", *(after or ()), limit=limit)
        rows = [SessionRow(SessionId(str(session_id)), *rest) for session_id, *rest in found]
        self._require_order(rows, after)
        return rows

    def session(self, session_id: SessionId) -> SessionRow | None:
        """See `SessionViews`."""
        return next((SessionRow(*row) for row in self._rows(f"{_SESSION} WHERE s.session_id = ?", session_id)), None)

    def runs(self, session_id: SessionId, *, after: int = 0, limit: int = PAGE_MAX) -> Sequence[RunRow]:
        """See `SessionViews`."""
        sql = f"{_RUN} WHERE session_id = ? AND admitted_sequence > ? ORDER BY admitted_sequence LIMIT ?"
        return [RunRow(*row) for row in self._rows(sql, session_id, after, limit=limit)]

    def run(self, run_id: RunId) -> RunRow | None:
        """See `SessionViews`."""
        return next((RunRow(*row) for row in self._rows(f"{_RUN} WHERE run_id = ?", run_id)), None)

    def open_runs(self, session_id: SessionId) -> Sequence[RunRow]:
        """See `SessionViews`."""
        sql = f"{_RUN} WHERE session_id = ? AND {OPEN_RUN} ORDER BY admitted_sequence"
        return [RunRow(*row) for row in self._rows(sql, session_id)]

    def folders_of(self, workspace_identity: str, *, limit: int = PAGE_MAX) -> Sequence[str]:
        """See `SessionViews`. It goes from one folder to the next, and costs nothing for the runs in between."""
        return [str(folder) for (folder,) in self._rows(_FOLDERS, workspace_identity, workspace_identity, limit=limit)]

    def kinships(self, session_ids: Sequence[SessionId]) -> Sequence[Kinship]:
        """See `FamilyViews`."""
        if len(session_ids) > PAGE_MAX:
            raise ValueError(f"at most {PAGE_MAX} sessions, not {len(session_ids)}")
        rows = self._rows(_KINSHIP, json.dumps(session_ids))
        return [Kinship(session_id, bool(unstarted), parent) for session_id, unstarted, parent in rows]

    def children(
        self, session_id: SessionId, *, after: SessionId | None = None, limit: int = PAGE_MAX
    ) -> Sequence[SessionId]:
        """See `FamilyViews`."""
        return [SessionId(child) for (child,) in self._rows(_CHILDREN, session_id, after or "", limit=limit)]

    def operations(self, run_id: RunId, *, after: int = 0, limit: int = PAGE_MAX) -> Sequence[OperationRow]:
        """See `OperationViews`."""
        return [OperationRow(*row) for row in self._rows(_OPERATIONS_OF_RUN, run_stream(run_id), after, limit=limit)]

    def operation(self, operation_id: OperationId) -> OperationRow | None:
        """See `OperationViews`."""
        rows = self._rows(f"{_OPERATION} WHERE operation_id = ?", operation_id)
        return next((OperationRow(*row) for row in rows), None)

    def unsettled(
        self, session_id: SessionId | None = None, *, after: OperationKey | None = None, limit: int = PAGE_MAX
    ) -> Sequence[OperationRow]:
        """See `OperationViews`."""
        arguments = (*(() if session_id is None else (session_id,)), *(after or ()))
        half = "1" if session_id is None else "{session} = ?"
        half += "" if after is None else " AND ({session}, {operation}) > (?, ?)"
        of_watched = half.format(session="o.session_id", operation="o.operation_id")
        of_head = half.format(session="s.session_id", operation=_DISPATCHED)
        sql = _UNSETTLED.format(of_watched=of_watched, of_head=of_head)
        return [OperationRow(*row) for row in self._rows(sql, *arguments, *arguments, limit=limit)]

    def open_permissions(
        self, session_id: SessionId | None = None, *, limit: int = PAGE_MAX
    ) -> Sequence[PermissionRow]:
        """See `OperationViews`."""
        arguments = () if session_id is None else (session_id,)
        of_session = "session_id = ? AND " if arguments else ""
        sql = f"{_PERMISSION} WHERE {of_session}{OPEN_PERMISSION} ORDER BY request_id LIMIT ?"
        return [PermissionRow(*row) for row in self._rows(sql, *arguments, limit=limit)]

    def permission(self, request_id: RequestId) -> PermissionRow | None:
        """See `OperationViews`."""
        rows = self._rows(f"{_PERMISSION} WHERE request_id = ?", request_id)
        return next((PermissionRow(*row) for row in rows), None)

    def continuation_of(self, boundary_digest: str) -> ContinuationRow | None:
        """See `ContinuationViews`."""
        rows = self._rows(f"{_CONTINUATION} WHERE boundary_digest = ?", boundary_digest)
        return next((ContinuationRow(*row) for row in rows), None)

    def continuation_to(self, target_run_id: RunId) -> ContinuationRow | None:
        """See `ContinuationViews`."""
        rows = self._rows(f"{_CONTINUATION} WHERE target_run_id = ?", target_run_id)
        return next((ContinuationRow(*row) for row in rows), None)

    def continuations(self, session_id: SessionId, *, limit: int = PAGE_MAX) -> Sequence[ContinuationRow]:
        """See `ContinuationViews`."""
        sql = f"{_CONTINUATION} WHERE session_id = ? ORDER BY claimed_at, claim_id LIMIT ?"
        return [ContinuationRow(*row) for row in self._rows(sql, session_id, limit=limit)]

    def _rows(self, sql: str, *arguments: object, limit: int | None = None) -> list[tuple[Any, ...]]:
        if limit is not None and not 1 <= limit <= PAGE_MAX:
            raise ValueError(f"limit must be 1 to {PAGE_MAX}, not {limit}")
        with self._readers.view() as view, self._mendable(view.connection):
            view.connection.text_factory = readable
            try:
                return view.connection.execute(sql, (*arguments, limit) if limit is not None else arguments).fetchall()
            finally:
                view.connection.text_factory = str

    def _require_order(self, rows: Sequence[SessionRow], after: SessionKey | None) -> None:
        """Whoever goes on after the last row must come to an end, also where damage put rows out of order."""
        before = [None if after is None else _order(after), *(_order(row.key) for row in rows)]
        if any(last is not None and key is not None and key >= last for last, key in pairwise(before)):
            raise ViewsDamaged(f"the view of the sessions in {self._place.database} is out of order")

    @contextmanager
    def _mendable(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Tell that it is the views that cannot be read: they are not there, or of another version, or damaged."""
        try:
            with translated(self._place.database, "read the views of"):
                yield
        except StoreDamaged as error:
            if are_as_expected(connection):
                raise ViewsDamaged(error.detail) from error
            raise ViewsDamaged(f"{error.detail}; the views were made by another version: rebuild them") from error


def _order(key: SessionKey) -> tuple[bytes, bytes]:
    return str(key.newest_at).encode("utf-8", "replace"), key.session_id.encode("utf-8", "replace")
