"""What of a session has no end yet: what repair closes, and why a session stays owned. SPEC section 11 and ADR 0088."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ..domain.errors import StoreDamaged, StoreError, StoreNotAdopted
from ..domain.events.run import RunClaimed
from ..domain.events.session import RunAdmitted
from ..domain.identifiers import SessionId
from ..domain.run.state import Run
from .ledger import CommandLedger


class End(StrEnum):
    """What is seen of a session's end by whoever wants to give it up."""

    CLOSED = "closed"
    """Nothing is open."""
    OPEN = "open"
    """Repair has something to close."""
    DAMAGED = "damaged"
    """Repair leaves it as it is: it waits for a person, who may come with another process."""
    UNSEEN = "unseen"
    """Nobody could look."""


class HeadRun(NamedTuple):
    """The newest run of a session.

    Attributes:
        admitted: its admission, which stands in the session.
        run: its facts; none where it was never opened.
        source: the run that was the head before, where this one has no event: a claim that admitted it stands there.
    """

    admitted: RunAdmitted
    run: Run
    source: Run | None

    @property
    def claimed(self) -> RunClaimed | None:
        """The unstarted claim whose target it is; None where it has events, or where no claim names it."""
        claimed = None if self.source is None else self.source.claimed
        return claimed if claimed is not None and claimed.target.run_id == self.admitted.run_id else None

    @property
    def unexplained(self) -> bool:
        """True of a run that has no event, and that no claim names."""
        return self.run.opening is None and self.claimed is None


def head_run(ledger: CommandLedger, session_id: SessionId) -> HeadRun | None:
    """The newest run of a session; None where it has none, or where a person gave that up.

    Raises:
        StoreDamaged: a record does not verify.
        StoreUnavailable: it could not be read.
    """
    session = ledger.session(session_id)
    head = session.head
    if head is None or head.run_id in session.abandoned:
        return None
    run = ledger.run(head.run_id)
    before = session.previous if run.opening is None else None
    return HeadRun(head, run, None if before is None else ledger.run(before.run_id))


def _closable(ledger: CommandLedger, head: HeadRun) -> bool:
    """Whether repair can close a head run that has no end."""
    decided_on = head.run if head.run.opening is not None else head.source
    return not head.unexplained and decided_on is not None and ledger.damage_of(decided_on) is None


def end_of(ledger: CommandLedger, session_id: SessionId) -> End:
    """What the newest run of a session says of its end, looked at now."""
    try:
        head = head_run(ledger, session_id)
        if head is None or head.run.ended is not None:
            return End.CLOSED
        return End.OPEN if _closable(ledger, head) else End.DAMAGED
    except StoreNotAdopted:
        return End.UNSEEN  # about the whole store, not about this session
    except StoreDamaged:
        return End.DAMAGED
    except StoreError:
        return End.UNSEEN
