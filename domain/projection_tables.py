"""The shapes of the views beside the events: their tables, keys and columns. SPEC section 7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Column: TypeAlias = str | int | None


class Row(NamedTuple):
    """A partial upsert: the columns that an event sets in the row with this key (all key columns are in `values`)."""

    table: str
    values: Mapping[str, Column]


class Table(NamedTuple):
    """A view: its key columns first, then the rest, each with its SQL type."""

    key: tuple[str, ...]
    columns: Mapping[str, str]


def _table(key: str, *columns: str) -> Table:
    named = {}
    for part in " ".join((key, *columns)).split():
        name, _, kind = part.partition(":")
        named[name] = "INTEGER" if kind == "int" else "TEXT"
    return Table(tuple(part.partition(":")[0] for part in key.split()), named)


TABLES: Mapping[str, Table] = {
    "sessions": _table(
        "session_id",
        "opened_at head_run_id head_kind head_admitted_at head_sequence:int",
    ),
    "runs": _table(
        "run_id",
        "session_id turn_id invocation_id kind claim_id admitted_sequence:int admitted_at abandoned_by",
        "opened_at opened_event_id cwd workspace_identity provider model protocol incarnation_id epoch:int",
        "parent_run_id parent_operation_id cancel_requested_by",
        "ended_at ended_event_id status failure_class recovered:int claimed_by_claim_id claimed_by_run_id",
    ),
    "turns": _table(
        "turn_id run_id",
        "session_id user_event_id user_text_length:int started_at",
    ),
    "operations": _table(
        "operation_id",
        "session_id run_id call_id tool_name mode life incarnation_id args_hash",
        "dispatched_sequence:int dispatched_at dispatch_event_id",
        "outcome_event_id outcome_is_error:int effect redeliveries_event_id",
        "observation decision reason decision_event_id attestation attestation_event_id watched cleared_by",
    ),
    "operation_journal": _table(
        "run_id sequence:int",
        "operation_id entry event_id occurred_at",
    ),
    "permissions": _table(
        "request_id",
        "session_id run_id call_id tool_name args_hash reason requested_event_id",
        "approved:int decided_by decided_event_id closed_event_id",
    ),
    "continuations": _table(
        "claim_id",
        "session_id source_run_id source_high_water:int source_digest boundary_digest target_run_id trigger",
        "claimed_event_id claimed_at started_kind started_event_id",
    ),
}
"""Every projection of SPEC section 7."""
