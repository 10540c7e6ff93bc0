"""Which incarnation owns a session, and with which epoch (the fencing token). SPEC section 15."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..domain.identifiers import IncarnationId, SessionId
from .incarnations import Incarnation

TOGETHER_MAX = 1000
"""How many rows may be taken or released in one transaction."""


class Ownership(NamedTuple):
    """The control row of a session.

    `incarnation_id` is None when the last owner released it; the epoch stays.
    """

    session_id: SessionId
    incarnation_id: IncarnationId | None
    epoch: int


class SessionOwners(Protocol):
    """Control rows: neither projections nor rebuilt.

    Raises (all methods): StoreUnavailable when it could not look or could not write.
    """

    @abstractmethod
    def owner(self, session_id: SessionId) -> Ownership | None:
        """The present row, or None when the session was never owned."""

    @abstractmethod
    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        """Compare and set: become the owner with the next epoch if the row is still `seen`; None when it has changed.

        Whether the previous owner is dead is the caller's question, asked before.
        """

    @abstractmethod
    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        """Give the session up if it is still owned so; False when it is not."""

    @abstractmethod
    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        """As `take` for each of several rows, in their order and in one transaction: what has changed is not taken.

        Args:
            seen: rows of different sessions, at most `TOGETHER_MAX`.
        """

    @abstractmethod
    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        """As `release` for each of several rows, in their order and in one transaction.

        Args:
            owned: rows of different sessions, each with its owner, at most `TOGETHER_MAX`.
        """

    @abstractmethod
    def register(self, incarnation: Incarnation) -> None:
        """Record the facts of an incarnation before it owns anything; idempotent."""

    @abstractmethod
    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        """The recorded facts of an incarnation, or None when it was never registered."""


def require_few(rows: Sequence[Ownership]) -> None:
    """Refuse more rows than one transaction may change, and rows of one session twice: a caller's bug."""
    if len(rows) > TOGETHER_MAX or len({row.session_id for row in rows}) < len(rows):
        raise ValueError(f"at most {TOGETHER_MAX} rows of different sessions, not {len(rows)}")
