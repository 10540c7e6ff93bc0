"""A person takes a session from its owner: ends that process, or only fences it. SPEC section 15.

Taking over from a dead owner needs nobody's word. From one that lives it is done by command alone: nothing expires.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, TypeAlias

from ..domain.errors import SafepointError
from ..domain.identifiers import IncarnationId, SessionId
from ..ports.incarnations import Incarnation, Liveness
from ..ports.store_keeping import StoreKeeping
from .ownership import SessionOwnership
from .paging import every
from .repair_session import Repaired, RepairSession

END_SECONDS: Final = 30.0
"""How long the ending of a process is waited for; it is asked first, and killed when it does not hear."""
OTHERS_MAX: Final = 1_000

Ending: TypeAlias = Callable[[Incarnation, tuple[SessionId, ...], float], None]
"""Told which process is about to be ended, which other sessions it owns, and how long that may take."""


class TookOver(StrEnum):
    """How the session came into other hands."""

    UNOWNED = "unowned"
    """Nobody else owned it."""
    AFTER_DEATH = "after_death"
    """Its owner was dead."""
    ENDED = "ended"
    """Its owner lived, and was ended."""
    FORCED = "forced"
    """Its owner may live on and is fenced: it writes nothing more in this session."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What a take-over came to.

    Attributes:
        owner: the former owner, as it is recorded.
        others: sessions that this owner worked on too, and which its end interrupted.
        repaired: what was closed in the session.
    """

    how: TookOver
    owner: Incarnation | None
    others: tuple[SessionId, ...]
    repaired: Repaired


class TakeoverRefused(SafepointError):
    """The owner cannot be ended from here, or did not end; nothing was written.

    Attributes:
        owner: its recorded facts; None when they are not recorded.
        liveness: what was seen of it last.
    """

    def __init__(self, session_id: SessionId, owner: Incarnation | None, liveness: Liveness, detail: str) -> None:
        who = "an unknown process" if owner is None else f"process {owner.pid} on {owner.host}"
        super().__init__(f"session {session_id} is owned by {who}, which {detail}")
        self.session_id = session_id
        self.owner = owner
        self.liveness = liveness


class TakeOver:
    """Takes one session over and brings what is open in it to a clear end.

    Args:
        keeping: knows which other sessions an owner has.
        end_seconds: how long the ending of a process is waited for.
    """

    def __init__(
        self,
        ownership: SessionOwnership,
        repair: RepairSession,
        keeping: StoreKeeping,
        *,
        end_seconds: float = END_SECONDS,
    ) -> None:
        self._ownership = ownership
        self._repair = repair
        self._keeping = keeping
        self._end_seconds = end_seconds

    def __call__(
        self,
        session_id: SessionId,
        *,
        fence_only: bool = False,
        ending: Ending = lambda owner, others, seconds: None,
    ) -> TakenOver:
        """Take it over.

        Args:
            fence_only: an owner that lives, or could not be looked at, is left alone: it can write nothing more, and
                what its operations do goes on and is not over.
            ending: told before a process is ended.

        Raises:
            TakeoverRefused: the owner could not be looked at, or did not end.
            SessionBusy: this very process works on it, or another was faster.
            StoreError: it could not be read or written.
        """
        row, owner, liveness = self._ownership.owner_of(session_id)
        incarnation_id = None if row is None else row.incarnation_id
        if incarnation_id is None or self._ownership.is_mine(incarnation_id):
            return self._own(session_id, TookOver.UNOWNED, None)
        if liveness is Liveness.DEAD:
            return self._own(session_id, TookOver.AFTER_DEATH, owner)
        if fence_only:
            return self._own(session_id, TookOver.FORCED, owner, fencing=incarnation_id)
        if owner is None or liveness is not Liveness.ALIVE:
            raise TakeoverRefused(session_id, owner, Liveness.COULD_NOT_LOOK, _NOT_SEEN)
        others = self._others(session_id, incarnation_id)
        ending(owner, others, self._end_seconds)
        self._ownership.end_owner(owner, self._end_seconds)
        self._require_gone(session_id, owner)
        return self._own(session_id, TookOver.ENDED, owner, others)

    def _require_gone(self, session_id: SessionId, ended: Incarnation) -> None:
        """Once it has ended its lock is free, or it left in order, and then it gave the session up before."""
        row, owner, liveness = self._ownership.owner_of(session_id)
        still = row is not None and row.incarnation_id == ended.incarnation_id
        if still and liveness is not Liveness.DEAD:
            detail = f"did not end within {self._end_seconds:g} seconds, or may not be ended by you"
            seen = Liveness.COULD_NOT_LOOK if liveness is None else liveness
            raise TakeoverRefused(session_id, owner, seen, detail)

    def _own(
        self,
        session_id: SessionId,
        how: TookOver,
        owner: Incarnation | None,
        others: tuple[SessionId, ...] = (),
        *,
        fencing: IncarnationId | None = None,
    ) -> TakenOver:
        with self._ownership.held(session_id, fencing=fencing) as owned:
            repaired = self._repair(owned)
        return TakenOver(how, owner, others, repaired)

    def _others(self, session_id: SessionId, owner: IncarnationId) -> tuple[SessionId, ...]:
        rows = every(lambda after: self._keeping.owned_sessions(after=after), "", lambda row: row.session_id)
        found = (row.session_id for row in rows if row.incarnation_id == owner and row.session_id != session_id)
        return tuple(islice(found, OTHERS_MAX))


_NOT_SEEN: Final = (
    "could not be looked at: it is on another host or in another container, or its lock file is gone; it was left alone"
)
