"""A program that commits one recovery bundle, completed, parked or attested, with nothing of a command around it.

The composition, the store and the failpoints are the real ones; only the command comes from here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from safepoint.adapters.cli.failures import failure_of
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.application.ledger import CommandLedger
from safepoint.application.ownership import Owned
from safepoint.application.spines import Spines
from safepoint.domain.commands import CommitAttestation, CommitRecovery
from safepoint.domain.errors import SafepointError
from safepoint.domain.events.tool import (
    Disposition,
    Effect,
    Observation,
    Statement,
    ToolAttested,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolResponded,
)
from safepoint.domain.identifiers import SessionId
from safepoint.domain.operation.state import unanswered_of
from safepoint.domain.reasons import RecoveryReason, VerdictReason

ATTESTED = "attested"


def bundle_of(
    ledger: CommandLedger, spines: Spines, owned: Owned, disposition: str
) -> CommitRecovery | CommitAttestation:
    """The bundle about a session's one unknown operation: its outcome came late, or its contract forbids recovery, or a
    person says what it was.
    """
    head = ledger.session(owned.session_id).head
    assert head is not None
    run = ledger.run(head.run_id)
    (operation,) = unanswered_of(run)
    assert run.opening is not None
    assert operation.called is not None
    assert operation.dispatch is not None
    identity, called, dispatch = run.opening.identity, operation.called, operation.dispatch
    completed = disposition == Disposition.COMPLETED
    reconciled = ToolReconciled(
        **spines.run(identity),
        operation_id=dispatch.operation_id,
        observation=Observation.LATE_OUTCOME if completed else Observation.UNREADABLE,
        reconciler_id="test",
        reconciler_version=1,
    )
    outcome = ToolResponded(
        **spines.run(identity),
        call_id=called.call_id,
        tool_name=called.tool_name,
        operation_id=dispatch.operation_id,
        result="late",
        is_error=False,
        effect=Effect.DONE,
    )
    guard = (owned.session_id, owned.incarnation_id, owned.epoch)
    if disposition == ATTESTED:
        attested = ToolAttested(
            **spines.run(identity),
            operation_id=dispatch.operation_id,
            statement=Statement.COMPLETED,
            by="somebody",
            note="I looked",
        )
        return CommitAttestation(*guard, head.run_id, run.sequence, attested, outcome)
    evidence = (called.event_id, dispatch.event_id, reconciled.event_id)
    decided = ToolRecoveryDecided(
        **spines.run(identity),
        operation_id=dispatch.operation_id,
        disposition=Disposition(disposition),
        reason=VerdictReason.RECOVERY_BUNDLE_COMPLETED if completed else RecoveryReason.CONTRACT_FORBIDS_RECOVERY,
        evidence_event_ids=(*evidence, outcome.event_id) if completed else evidence,
        outcome_event_id=outcome.event_id if completed else None,
    )
    return CommitRecovery(*guard, head.run_id, run.sequence, reconciled, outcome if completed else None, decided)


def decide(store: Path, session_id: SessionId, disposition: str) -> int:
    """Own the session, commit the bundle, and say what became of it."""
    try:
        with OpenedStore(Settings(store)) as runtime:
            parts = runtime.parts
            owned = parts.ownership().own(session_id)
            parts.ledger().execute(bundle_of(parts.ledger(), parts.spines(), owned, disposition))
            parts.ownership().release(owned)
    except SafepointError as error:
        sys.stdout.write(f"{failure_of(error).code}\n")
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(decide(Path(sys.argv[1]), SessionId(sys.argv[2]), sys.argv[3]))
