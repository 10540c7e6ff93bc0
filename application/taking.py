"""How a task comes to own a session: it has it, or nobody has. ADR 0090."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.identifiers import SessionId
from .in_thread import in_thread
from .ownership import Owned, SessionOwnership


async def taken(ownership: SessionOwnership, session_id: SessionId, check: Callable[[], None] = lambda: None) -> Owned:
    """Become the owner of a session, as `SessionOwnership.own`; whoever gets it keeps it or gives it up.

    A task that is cancelled meanwhile, by whatever means, either gets it and hears of that at its next await, or does
    not get it: it is given up before the cancellation goes on.

    Args:
        check: called before, in the same thread; what it raises is raised, and nothing is taken.

    Raises:
        SessionBusy, StoreUnavailable: as `own`.
    """

    def own() -> Owned:
        check()
        return ownership.own(session_id)

    return await in_thread(own, undo=ownership.give_up)
