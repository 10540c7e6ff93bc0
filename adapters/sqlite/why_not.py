"""Why a commit does not fit: looked up only after SQLite refused it, so that what fits costs nothing. SPEC section
7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import chain

from ...domain.unique_ids import IdKind, UniqueId, ids_used_by
from ...ports.event_store import (
    Commit,
    CommitAnswer,
    ConstraintBroken,
    DuplicateId,
    Fenced,
    OwnerGuard,
    VersionConflict,
)
from .event_rules import NOT_NEXT

OWNER = "SELECT incarnation_id, epoch FROM session_owners WHERE session_id = ?"
_USED = "SELECT 1 FROM unique_ids WHERE id = ? AND kind = ?"
_ADMITTED = "SELECT 1 FROM admissions WHERE run_id = ?"
_HEAD = "SELECT COALESCE(MAX(originator_version), 0) FROM stored_events WHERE originator_id = ?"


def why_not(cursor: sqlite3.Cursor, commit: Commit) -> CommitAnswer | None:
    """The first reason why a commit does not fit the present state, or None when only SQLite knows.

    Args:
        cursor: reads a state without this commit.
        commit: was refused.
    """
    ids = list(chain.from_iterable(ids_used_by(sealed.event) for sealed in commit.events))
    return (
        _used_twice(cursor, (one for one in ids if one.kind is IdKind.EVENT))
        or (None if owns(cursor, commit.guard) else Fenced(commit.guard.session_id, commit.guard.epoch))
        or _version_conflict(cursor, commit)
        or _used_twice(cursor, (one for one in ids if one.kind is not IdKind.EVENT))
    )


def owns(cursor: sqlite3.Cursor, guard: OwnerGuard) -> bool:
    """Tell whether the guard's incarnation owns its session with its epoch."""
    row = cursor.execute(OWNER, (guard.session_id,)).fetchone()
    return bool(row == (guard.incarnation_id, guard.epoch))


def _used_twice(cursor: sqlite3.Cursor, ids: Iterator[UniqueId]) -> DuplicateId | None:
    seen: set[UniqueId] = set()
    for one in ids:
        sql, arguments = (_ADMITTED, (one.id,)) if one.kind is IdKind.RUN else (_USED, (one.id, one.kind.value))
        if one in seen or cursor.execute(sql, arguments).fetchone():
            return DuplicateId(one.kind.value, one.id)
        seen.add(one)
    return None


def _version_conflict(cursor: sqlite3.Cursor, commit: Commit) -> VersionConflict | ConstraintBroken | None:
    heads: dict[str, int] = {}
    for sealed in commit.events:
        stream = sealed.stream
        if stream not in heads:
            (heads[stream],) = cursor.execute(_HEAD, (stream,)).fetchone()
            if sealed.sequence != heads[stream] + 1:
                return VersionConflict(stream)
        elif sealed.sequence != heads[stream] + 1:
            return ConstraintBroken(NOT_NEXT)
        heads[stream] = sealed.sequence
    return None
