"""Removing the content of sessions from a store for good. SPEC section 16, retention; ADR 0070."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..domain.events.event import Timestamp
from ..domain.identifiers import SessionId


class Forgotten(NamedTuple):
    """What was done.

    Attributes:
        events: how many lost their content now; those that had lost it before are not counted.
        runs: how many runs they belonged to.
        log_emptied: False where another program was reading, so that the store's log may hold the old bytes until the
            last program closes the store.
    """

    events: int
    runs: int
    log_emptied: bool


class SessionForgetting(Protocol):
    """The one operation that takes content away, at a person's word; beside it events are never changed or deleted."""

    @abstractmethod
    def forget(self, session_ids: Sequence[SessionId], *, by: str, at: Timestamp) -> Forgotten:
        """Put tombstones in the place of all events of sessions and of the runs that they admitted; in one transaction.

        Order, counts, used ids, admissions, claims and seals stay, so that nothing of it can be used again, and what
        vouches for the rest of the store goes on to do so. The views have no rows of it any more.

        Args:
            session_ids: owned by the caller; nothing of them may be running.
            by, at: for the record.

        Raises:
            StoreUnavailable, StoreFull, StoreDamaged, StoreNotAdopted: nothing was changed, or as a whole, where it is
                not known whether it was committed.
        """
