"""Operations as SQL: what was dispatched is read from its event, and only what follows is kept in a table. SPEC
section 7 and ADR 0071.

So T1 writes no row, and T2 a short one; the wide row of an operation would be written by both.
"""

from __future__ import annotations

from ...domain.events.tool import ToolDispatched
from ...domain.projections import TABLES, Column, Row, Table
from ...domain.unique_ids import IdKind
from .stored_fields import field_of

OPERATIONS = "operations"
OUTCOMES = "operation_outcomes"
_DISPATCHED = {
    "session_id": "session_id",
    "run_id": "run_id",
    "call_id": "call_id",
    "tool_name": "tool_name",
    "mode": "contract.mode",
    "life": "life",
    "incarnation_id": "incarnation_id",
    "args_hash": "args_hash",
    "dispatched_at": "occurred_at",
    "dispatch_event_id": "event_id",
}
"""Columns of an operation that its dispatch says, and where."""
_SEQUENCE = "dispatched_sequence"
_LISTED = "session_id"
"""Kept beside what follows a dispatch, too, once it is watched: the watch list is read by session."""
TABLE = Table(
    TABLES[OPERATIONS].key,
    {
        name: kind
        for name, kind in TABLES[OPERATIONS].columns.items()
        if name == _LISTED or not (name in _DISPATCHED or name == _SEQUENCE)
    },
)


def outcome_row(row: Row, session_id: str) -> Row | None:
    """What is kept of a row of the operations; None where its event says all of it.

    Args:
        row: what an event makes.
        session_id: of that event.
    """
    kept: dict[str, Column] = {name: value for name, value in row.values.items() if name not in _DISPATCHED}
    if kept.pop(_SEQUENCE, None) is not None:
        return None
    if "watched" in kept:
        kept[_LISTED] = session_id
    return Row(OUTCOMES, kept)


def columns(key: str, session: str) -> str:
    """SQL for all columns of operations, in their order; a dispatch is named `e`, the row of what followed `o`.

    Args:
        key: SQL for the operation's id.
        session: SQL for its session.
    """
    known = {"operation_id": key, _LISTED: session, _SEQUENCE: "e.originator_version"}
    for name in TABLES[OPERATIONS].columns.keys() - known.keys():
        said = _DISPATCHED.get(name)
        known[name] = f"o.{name}" if said is None else field_of(said, "e.state")
    return ", ".join(f"{known[name]} AS {name}" for name in TABLES[OPERATIONS].columns)


def view_statement() -> str:
    """The statement that makes the view: every operation that was dispatched, and whatever damage left of others."""
    session = field_of(_LISTED, "e.state")
    of_kind = f"u.kind = '{IdKind.OPERATION}'"
    return f"""CREATE VIEW {OPERATIONS} AS SELECT {columns("u.id", session)} FROM unique_ids u
    JOIN stored_events e ON e.rowid = u.event LEFT JOIN {OUTCOMES} o ON o.operation_id = u.id
    WHERE {of_kind} AND e.topic = '{ToolDispatched.topic}'
    UNION ALL SELECT {columns("o.operation_id", "NULL")} FROM {OUTCOMES} o LEFT JOIN stored_events e ON 0
    WHERE NOT EXISTS (SELECT 1 FROM unique_ids u WHERE u.id = o.operation_id AND {of_kind})"""
