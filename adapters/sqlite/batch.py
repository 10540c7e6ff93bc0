"""A whole group of commits inserted at once, as if none of them could be refused: nearly always none is. SPEC section
7 and ADR 0033.

Where one is, the transaction begins anew, and the caller inserts them one by one, a savepoint each.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache

from ...domain.projections import Column
from ...domain.sealing import SealedEvent
from ...ports.event_store import Commit
from .errors import is_broken_rule
from .projection_tables import changes
from .transaction import Transaction

_OWNERS = (
    "SELECT session_id, incarnation_id, epoch FROM session_owners WHERE session_id IN (SELECT value FROM json_each(?))"
)
_TOGETHER = (64, 32, 16, 8, 4, 2, 1)
"""How many events one statement inserts: SQLite sets up its rules once for all of them."""


def keep_all(transaction: Transaction, commits: Sequence[Commit]) -> bool:
    """Insert all commits in their order; False, and nothing is inserted, where one of them does not fit.

    Raises:
        sqlite3.DatabaseError: nothing can be said of any of them.
        StoreError: the transaction could not begin anew.
    """
    try:
        if _all_owned(transaction, commits) and _inserted(transaction, commits):
            return True
    except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
        if not is_broken_rule(error):
            raise
    transaction.begin_anew()
    return False


def _all_owned(transaction: Transaction, commits: Sequence[Commit]) -> bool:
    guards = {commit.guard for commit in commits} - transaction.owners
    if not guards:
        return True
    sessions = json.dumps([guard.session_id for guard in guards])
    if guards != set(transaction.raw.execute(_OWNERS, (sessions,))):
        return False
    transaction.owners.update(guards)
    return True


def _inserted(transaction: Transaction, commits: Sequence[Commit]) -> bool:
    """Whether all commits continue their chains; their events are inserted then, and after them their rows."""
    links, cursor = transaction.links, transaction.raw
    for commit in commits:
        if links.broken(cursor, commit) is not None:
            return False
        links.add(commit)
    events = [sealed for commit in commits for sealed in commit.events]
    _insert_events(transaction, events)
    _insert_rows(transaction, events)
    return True


def insert(transaction: Transaction, commit: Commit) -> None:
    """Insert the events and rows of a commit that continues its chains.

    Raises:
        sqlite3.DatabaseError: it does not fit (`is_broken_rule`), or nothing can be said of it.
    """
    events = commit.events
    if len(events) == 1:  # T1 and T2, above all
        (sealed,) = events
        stream, sequence, event, state, _, _ = sealed
        transaction.execute(transaction.insert_event, (stream, sequence, event.topic, state))
        for _, statement, values in changes(sealed):
            transaction.execute(statement, values)
    else:
        _insert_events(transaction, events)
        _insert_rows(transaction, events)
    transaction.links.add(commit)


def _insert_events(transaction: Transaction, events: Sequence[SealedEvent]) -> None:
    execute, statement = transaction.execute, transaction.insert_event
    values = [value for one in events for value in (one[0], one[1], one[2].topic, one[3])]
    place = 0
    for size in _TOGETHER:
        width = 4 * size
        while len(values) - place >= width:
            execute(_for_rows(statement, size), values[place : place + width])
            place += width


@lru_cache(maxsize=len(_TOGETHER))
def _for_rows(statement: str, count: int) -> str:
    """The recorder's statement for so many events."""
    return statement + ", (?, ?, ?, ?)" * (count - 1)


def _insert_rows(transaction: Transaction, events: Sequence[SealedEvent]) -> None:
    """Put rows in, those of each table in their order: what follows one another there and is alike by one statement."""
    waiting: dict[str, tuple[str, list[tuple[Column, ...]]]] = {}
    for sealed in events:
        for table, statement, values in changes(sealed):
            before = waiting.get(table)
            if before is not None and before[0] is statement:
                before[1].append(values)
                continue
            if before is not None:
                transaction.execute_all(*before)
            waiting[table] = (statement, [values])
    for alike in waiting.values():
        transaction.execute_all(*alike)
