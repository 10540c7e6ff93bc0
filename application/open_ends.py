"""What of a session has no end yet: what repair closes, and why a session stays owned. SPEC section 11 and ADR 0088."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.events.run import RunClaimed
from ..domain.events.session import RunAdmitted
from ..domain.identifiers import SessionId
from ..domain.run.state import Run
from .ledger import CommandLedger
from .states import contradiction


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


def is_open(ledger: CommandLedger, session_id: SessionId) -> bool:
    """Whether a session has an open run or an unstarted claim that repair can close; raises as `head_run` does."""
    head = head_run(ledger, session_id)
    if head is None or head.run.ended is not None:
        return False
    if head.run.opening is not None:
        return contradiction(head.run) is None
    return head.source is not None and head.claimed is not None and contradiction(head.source) is None
