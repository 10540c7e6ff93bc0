"""What is done to a program's store while the program stands still at an instant."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Protocol

from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.adapters.sqlite.store import open_store
from safepoint.domain.identifiers import SessionId

from ...adapters.sqlite.log_bytes import used
from .program import Started
from .stage import SESSION, Stage


class Mischief(Protocol):
    """Begins at once and is undone in the end."""

    def __call__(self, stage: Stage, started: Started) -> AbstractContextManager[None]:
        """Do it."""


@contextmanager
def no_room(stage: Stage, started: Started) -> Iterator[None]:
    """No file may hold more than now: the next page that is written to the WAL does not fit."""
    wal_bytes = used(stage.store.with_name(f"{stage.store.name}-wal").read_bytes())
    resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (wal_bytes, wal_bytes))
    yield


@contextmanager
def locked(stage: Stage, started: Started) -> Iterator[None]:
    """Another process writes, for longer than anybody waits."""
    with closing(sqlite3.connect(stage.store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def fenced(stage: Stage, started: Started) -> Iterator[None]:
    """Another owner takes the session, as a takeover by force does; it gives it up again in the end."""
    incarnations = FileLockIncarnations(stage.store.with_name(f"{stage.store.name}.locks"))
    held = incarnations.enter()
    with closing(open_store(stage.store)) as store:
        store.owners.register(held.incarnation)
        session_id, mine = SessionId(SESSION), held.incarnation.incarnation_id
        taken = store.owners.take(session_id, mine, store.owners.owner(session_id))
        assert taken is not None
        yield
        store.owners.release(session_id, mine, taken.epoch)
    held.leave(keep_lock_file=False)


@contextmanager
def unreadable_anchor(stage: Stage, started: Started) -> Iterator[None]:
    """The anchor says nothing for a while, as on a disk that fails."""
    anchor = stage.store.with_name(f"{stage.store.name}.anchor")
    content = anchor.read_bytes()
    anchor.write_bytes(b"\0" * len(content))
    yield
    anchor.write_bytes(content)
