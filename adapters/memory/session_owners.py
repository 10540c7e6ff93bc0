"""Owners and epochs in memory. SPEC section 15."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.identifiers import IncarnationId, SessionId
from ...ports.incarnations import Incarnation
from ...ports.session_owners import Ownership, SessionOwners, require_few
from .tables import MemoryTables, require_readable, require_writable


class MemorySessionOwners(SessionOwners):
    """The control rows of a store in memory."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def owner(self, session_id: SessionId) -> Ownership | None:
        """See `SessionOwners`."""
        with self._tables.lock:
            require_readable(self._tables)
            return self._tables.owners.get(session_id)

    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        """See `SessionOwners`."""
        with self._tables.lock:
            require_writable(self._tables)
            if self._tables.owners.get(session_id) != seen:
                return None
            if incarnation_id not in self._tables.incarnations:
                raise ValueError(f"incarnation {incarnation_id} was never registered")
            taken = Ownership(session_id, incarnation_id, 1 if seen is None else seen.epoch + 1)
            self._tables.owners[session_id] = taken
            return taken

    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        """See `SessionOwners`."""
        with self._tables.lock:
            require_writable(self._tables)
            if self._tables.owners.get(session_id) != Ownership(session_id, incarnation_id, epoch):
                return False
            self._tables.owners[session_id] = Ownership(session_id, None, epoch)
            return True

    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        """See `SessionOwners`."""
        require_few(seen)
        with self._tables.lock:
            return [self.take(row.session_id, incarnation_id, row) for row in seen]

    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        """See `SessionOwners`."""
        require_few(owned)
        with self._tables.lock:
            return [
                row.incarnation_id is not None and self.release(row.session_id, row.incarnation_id, row.epoch)
                for row in owned
            ]

    def register(self, incarnation: Incarnation) -> None:
        """See `SessionOwners`."""
        with self._tables.lock:
            require_writable(self._tables)
            recorded = self._tables.incarnations.setdefault(incarnation.incarnation_id, incarnation)
        if recorded != incarnation:
            raise ValueError(f"incarnation {incarnation.incarnation_id} is recorded with other facts")

    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        """See `SessionOwners`."""
        with self._tables.lock:
            require_readable(self._tables)
            return self._tables.incarnations.get(incarnation_id)
