"""Lists and pages of a store in memory. SPEC sections 7 and 17."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...domain.identifiers import OperationId, RequestId, RunId, SessionId
from ...domain.projections import Column
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
from .tables import MemoryTables, require_readable

Found = Mapping[str, Column]
RowT = TypeVar("RowT", bound=tuple[Any, ...])


_WATCHED = ("indeterminate", "parked", "unknown")


def _is_watched(row: Found) -> bool:
    return row["watched"] in _WATCHED and row["cleared_by"] is None


def _is_in_doubt(row: Found) -> bool:
    unknown = row["effect"] == "unknown" and row["attestation"] in (None, "over")
    unseen = row["watched"] is None and row["cleared_by"] is None
    return unseen and (row["outcome_event_id"] is None or unknown)


def _may_go_on(run: Found) -> bool:
    """Whether a head run is open, or ended so that it may be continued."""
    return run["abandoned_by"] is None and run["claimed_by_claim_id"] is None and run["status"] != "completed"


class MemoryViews(Views):
    """The views of a store in memory."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def sessions(self, *, after: SessionKey | None = None, limit: int = 50) -> Sequence[SessionRow]:
        """See `SessionViews`."""
        _require_limit(limit)
        rows = [self._session(row) for row in self._rows("sessions")]
        return sorted((row for row in rows if after is None or row.key < after), key=_session_key, reverse=True)[:limit]

    def session(self, session_id: SessionId) -> SessionRow | None:
        """See `SessionViews`."""
        rows = self._rows("sessions", lambda row: row["session_id"] == session_id)
        return next((self._session(row) for row in rows), None)

    def runs(self, session_id: SessionId, *, after: int = 0, limit: int = PAGE_MAX) -> Sequence[RunRow]:
        """See `SessionViews`."""
        _require_limit(limit)
        rows = self._rows(
            "runs", lambda row: row["session_id"] == session_id and _number(row, "admitted_sequence") > after
        )
        return _typed(RunRow, sorted(rows, key=lambda row: _number(row, "admitted_sequence"))[:limit])

    def run(self, run_id: RunId) -> RunRow | None:
        """See `SessionViews`."""
        return next(iter(_typed(RunRow, self._rows("runs", lambda row: row["run_id"] == run_id))), None)

    def open_runs(self, session_id: SessionId) -> Sequence[RunRow]:
        """See `SessionViews`."""
        rows = self._rows(
            "runs",
            lambda row: (
                row["session_id"] == session_id and row["ended_event_id"] is None and row["abandoned_by"] is None
            ),
        )
        return _typed(RunRow, sorted(rows, key=lambda row: _number(row, "admitted_sequence")))

    def folders_of(self, workspace_identity: str, *, limit: int = PAGE_MAX) -> Sequence[str]:
        """See `SessionViews`."""
        _require_limit(limit)
        rows = self._rows("runs", lambda row: row["workspace_identity"] == workspace_identity)
        return sorted({str(row["cwd"]) for row in rows if row["cwd"] is not None})[:limit]

    def kinships(self, session_ids: Sequence[SessionId]) -> Sequence[Kinship]:
        """See `FamilyViews`."""
        if len(session_ids) > PAGE_MAX:
            raise ValueError(f"at most {PAGE_MAX} sessions, not {len(session_ids)}")
        asked = frozenset(session_ids)
        rows = self._rows("sessions", lambda row: row["session_id"] in asked)
        return [
            Kinship(one.session_id, self._is_unstarted(one), self._parent(one.session_id))
            for one in map(self._session, rows)
        ]

    def children(
        self, session_id: SessionId, *, after: SessionId | None = None, limit: int = PAGE_MAX
    ) -> Sequence[SessionId]:
        """See `FamilyViews`."""
        _require_limit(limit)
        parents = {row["run_id"] for row in self._rows("runs", lambda row: row["session_id"] == session_id)}
        rows = _typed(RunRow, self._rows("runs", lambda row: row["parent_run_id"] in parents))
        found = {row.session_id for row in rows if row.session_id is not None}
        return sorted(one for one in found if after is None or one > after)[:limit]

    def _is_unstarted(self, session: SessionRow) -> bool:
        head = None if session.head_run_id is None else self.run(session.head_run_id)
        return head is not None and session.head_kind == "continuation" and head.opened_event_id is None

    def _parent(self, session_id: SessionId) -> SessionId | None:
        first = next(iter(self.runs(session_id, limit=1)), None)
        parent = None if first is None or first.parent_run_id is None else self.run(first.parent_run_id)
        return None if parent is None else parent.session_id

    def operations(self, run_id: RunId, *, after: int = 0, limit: int = PAGE_MAX) -> Sequence[OperationRow]:
        """See `OperationViews`."""
        _require_limit(limit)
        rows = self._rows(
            "operations", lambda row: row["run_id"] == run_id and _number(row, "dispatched_sequence") > after
        )
        return _typed(OperationRow, sorted(rows, key=lambda row: _number(row, "dispatched_sequence"))[:limit])

    def operation(self, operation_id: OperationId) -> OperationRow | None:
        """See `OperationViews`."""
        rows = self._rows("operations", lambda row: row["operation_id"] == operation_id)
        return next(iter(_typed(OperationRow, rows)), None)

    def unsettled(
        self, session_id: SessionId | None = None, *, after: OperationKey | None = None, limit: int = PAGE_MAX
    ) -> Sequence[OperationRow]:
        """See `OperationViews`."""
        _require_limit(limit)
        of_session = self._rows(
            "operations", lambda row: self._is_unsettled(row) and session_id in (None, row["session_id"])
        )
        rows = sorted(_typed(OperationRow, of_session), key=lambda row: row.key)
        return [row for row in rows if after is None or row.key > after][:limit]

    def open_permissions(
        self, session_id: SessionId | None = None, *, limit: int = PAGE_MAX
    ) -> Sequence[PermissionRow]:
        """See `OperationViews`."""
        _require_limit(limit)
        rows = self._rows(
            "permissions",
            lambda row: (
                row["decided_event_id"] is None
                and row["closed_event_id"] is None
                and session_id in (None, row["session_id"])
            ),
        )
        return sorted(_typed(PermissionRow, rows), key=lambda row: row.request_id)[:limit]

    def permission(self, request_id: RequestId) -> PermissionRow | None:
        """See `OperationViews`."""
        rows = self._rows("permissions", lambda row: row["request_id"] == request_id)
        return next(iter(_typed(PermissionRow, rows)), None)

    def continuation_of(self, boundary_digest: str) -> ContinuationRow | None:
        """See `ContinuationViews`."""
        rows = self._rows("continuations", lambda row: row["boundary_digest"] == boundary_digest)
        return next(iter(_typed(ContinuationRow, rows)), None)

    def continuation_to(self, target_run_id: RunId) -> ContinuationRow | None:
        """See `ContinuationViews`."""
        rows = self._rows("continuations", lambda row: row["target_run_id"] == target_run_id)
        return next(iter(_typed(ContinuationRow, rows)), None)

    def continuations(self, session_id: SessionId, *, limit: int = PAGE_MAX) -> Sequence[ContinuationRow]:
        """See `ContinuationViews`."""
        _require_limit(limit)
        rows = _typed(ContinuationRow, self._rows("continuations", lambda row: row["session_id"] == session_id))
        return sorted(rows, key=lambda row: (row.claimed_at or "", row.claim_id))[:limit]

    def _rows(self, table: str, wanted: Callable[[Found], bool] = lambda row: True) -> list[dict[str, Column]]:
        with self._tables.lock:
            require_readable(self._tables)
            return [dict(row) for row in self._tables.projections[table].values() if wanted(row)]

    def _is_unsettled(self, row: Found) -> bool:
        if _is_watched(row):
            return True
        tables = self._tables.projections
        run, session = tables["runs"].get((row["run_id"],)), tables["sessions"].get((row["session_id"],))
        if run is None or session is None or session["head_run_id"] != row["run_id"]:
            return False
        return _may_go_on(run) and _is_in_doubt(row)

    def _session(self, row: Found) -> SessionRow:
        with self._tables.lock:
            runs, operations = self._tables.projections["runs"], self._tables.projections["operations"]
            head = runs.get((row["head_run_id"],), {})
            unsettled = [
                one for one in operations.values() if one["session_id"] == row["session_id"] and self._is_unsettled(one)
            ]
        columns = ("session_id", "opened_at", "head_run_id", "head_kind", "head_admitted_at")
        of_head = ("status", "failure_class", "ended_at", "abandoned_by", "incarnation_id")
        values = [*(row[column] for column in columns), *(head.get(column) for column in of_head), len(unsettled)]
        return SessionRow._make(values)


def _session_key(row: SessionRow) -> SessionKey:
    return row.key


def _number(row: Found, column: str) -> int:
    value = row[column]
    return value if isinstance(value, int) else 0


def _typed(kind: type[RowT], rows: Iterable[Found]) -> list[RowT]:
    row_of: Any = kind  # a NamedTuple; the checker cannot say so of a type variable
    return [row_of(*(row[name] for name in row_of._fields)) for row in rows]


def _require_limit(limit: int) -> None:
    if not 1 <= limit <= PAGE_MAX:
        raise ValueError(f"limit must be 1 to {PAGE_MAX}, not {limit}")
