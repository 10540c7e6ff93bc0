"""Repair of one session with the sessions of its child runs, children first. SPEC section 11.

A child run lives in a session of its own. Whoever repairs a parent brings what its dead children left to an end before,
so that the parent never goes past work whose record is open. Generations deeper than are followed are repaired when
everything is.
"""

from __future__ import annotations

from ..domain.errors import WriteRefused
from ..domain.identifiers import SessionId
from ..domain.reasons import WriteRefusal
from ..ports.views import FamilyViews
from .family import children_of, descendants_of
from .ownership import Owned, SessionBusy, SessionOwnership
from .repair_session import Repair, Repaired


class RepairFamily(Repair):
    """Repairs the sessions of a session's child runs, and then the session itself.

    Args:
        repair: of one session.
        ownership: takes children whose owner is dead; one that lives, or could not be looked at, is left alone.
        views: know the children.
    """

    def __init__(self, repair: Repair, ownership: SessionOwnership, views: FamilyViews) -> None:
        self._repair = repair
        self._ownership = ownership
        self._views = views

    def __call__(self, owned: Owned, *, cancelled_by: str | None = None) -> Repaired:
        """Repair a session that is owned, after its children.

        Args:
            owned: the right to write the session.
            cancelled_by: a person who stops what is open; what nobody executes any more of its children ends so, too.

        Raises:
            As `RepairSession`; a damaged child does not stop its parent.
        """
        for child in descendants_of(self._views, owned.session_id):
            self._child(child, cancelled_by)
        return self._repair(owned, cancelled_by=cancelled_by)

    def child_waits(self, session_id: SessionId) -> bool:
        """See `Repair`: of the session's own children."""
        rows = (self._ownership.owner_of(child)[0] for child in children_of(self._views, session_id))
        return any(row is not None and self._ownership.may_be_taken(row) for row in rows)

    def _child(self, session_id: SessionId, cancelled_by: str | None) -> None:
        row, _, _ = self._ownership.owner_of(session_id)
        if row is None or not self._ownership.may_be_taken(row):
            return
        try:
            with self._ownership.held(session_id) as owned:
                self._repair(owned, cancelled_by=cancelled_by)
        except SessionBusy:
            return  # somebody took it just now
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.OWNER_FENCED:
                raise
