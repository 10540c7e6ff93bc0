"""A program that commits one recovery decision: the commands of the CLI have none yet, and P10 is inside of one.

The composition, the store and the failpoints are the real ones; only the command comes from here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.domain.commands import CommitRecovery
from safepoint.domain.events.tool import Disposition, Observation, ToolReconciled, ToolRecoveryDecided
from safepoint.domain.identifiers import SessionId
from safepoint.domain.operation.state import unanswered_of
from safepoint.domain.reasons import RecoveryReason


def park_the_unknown_operation(store: Path, session_id: SessionId) -> None:
    """Record that the contract of a session's one unknown operation forbids to recover it."""
    with OpenedStore(Settings(store)) as runtime:
        parts = runtime.parts
        owned = parts.ownership().own(session_id)
        head = parts.ledger().session(session_id).head
        assert head is not None
        run = parts.ledger().run(head.run_id)
        (operation,) = unanswered_of(run)
        assert run.opening is not None
        assert operation.called is not None
        assert operation.dispatch is not None
        spine = parts.spines().run(run.opening.identity)
        reconciled = ToolReconciled(
            **spine,
            operation_id=operation.dispatch.operation_id,
            observation=Observation.UNREADABLE,
            reconciler_id="contract",
            reconciler_version=1,
        )
        decided = ToolRecoveryDecided(
            **parts.spines().run(run.opening.identity),
            operation_id=operation.dispatch.operation_id,
            disposition=Disposition.PARKED,
            reason=RecoveryReason.CONTRACT_FORBIDS_RECOVERY,
            evidence_event_ids=(operation.called.event_id, operation.dispatch.event_id, reconciled.event_id),
        )
        guard = (session_id, owned.incarnation_id, owned.epoch)
        parts.ledger().execute(CommitRecovery(*guard, head.run_id, run.sequence, reconciled, None, decided))
        parts.ownership().release(owned)


if __name__ == "__main__":
    park_the_unknown_operation(Path(sys.argv[1]), SessionId(sys.argv[2]))
