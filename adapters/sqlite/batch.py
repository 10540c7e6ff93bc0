"""A whole group of commits inserted at once, as if none of them could be refused: nearly always none is. SPEC section
7 and ADR 0033.

Where one is, the transaction begins anew, and the caller inserts them one by one, a savepoint each.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from ...ports.event_store import Commit
from .errors import is_broken_rule
from .projection_tables import JOURNAL, upsert
from .transaction import Transaction

_OWNERS = (
    "SELECT session_id, incarnation_id, epoch FROM session_owners WHERE session_id IN (SELECT value FROM json_each(?))"
)


def keep_all(transaction: Transaction, commits: Sequence[Commit]) -> bool:
    """Insert all commits in their order; False, and nothing is inserted, where one of them does not fit.

    Raises:
        sqlite3.DatabaseError: nothing can be said of any of them.
        StoreError: the transaction could not begin anew.
    """
    try:
        if _all_owned(transaction.raw, commits) and _inserted(transaction, commits):
            return True
    except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
        if not is_broken_rule(error):
            raise
    transaction.begin_anew()
    return False


def _all_owned(cursor: sqlite3.Cursor, commits: Sequence[Commit]) -> bool:
    guards = {commit.guard for commit in commits}
    sessions = json.dumps([guard.session_id for guard in guards])
    return guards == set(cursor.execute(_OWNERS, (sessions,)))


def _inserted(transaction: Transaction, commits: Sequence[Commit]) -> bool:
    """Whether all commits continue their chains; each is inserted then, in its order."""
    broken, cursor = transaction.links.broken, transaction.raw
    for commit in commits:
        if broken(cursor, commit) is not None:
            return False
        insert(transaction, commit)
    return True


def insert(transaction: Transaction, commit: Commit) -> None:
    """Insert the events and rows of a commit that continues its chains.

    Raises:
        sqlite3.DatabaseError: it does not fit (`is_broken_rule`), or nothing can be said of it.
    """
    execute, statement = transaction.execute, transaction.recorder.insert_events_statement
    for stream, sequence, event, state, _, _ in commit.events:
        execute(statement, (stream, sequence, event.topic, state))
    for row in commit.rows:
        if row.table != JOURNAL:
            execute(*upsert(row))
    transaction.links.add(commit)
