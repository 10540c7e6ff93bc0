"""The outcome of an implementation that was given up and returned after all, while its owner still lives.

SPEC sections 7 and 10: after the terminal event it is a recovery bundle with the observation `late_outcome`.
"""

from __future__ import annotations

from ..domain.commands import CommitOutcome, CommitRecovery
from ..domain.errors import SafepointError, WriteRefused
from ..domain.events.session import NoticePosted
from ..domain.events.tool import (
    Disposition,
    Effect,
    Observation,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolResponded,
)
from ..domain.identifiers import NoticeId, derive_id
from ..domain.reasons import VerdictReason, WriteRefusal
from ..domain.sentences import SentenceId
from ..domain.tool_results import PreparedResult
from .ledger import CommandLedger
from .live_operations import LiveOperations
from .ownership import Owned
from .spines import Spines
from .tool_facts import response_of

RECONCILER_ID = "safepoint.late_outcome"
RECONCILER_VERSION = 1
TRIES_MAX = 8
"""How often it is tried while other facts of the run come first."""

_OUTCOMES = {
    Effect.DONE: "it was done",
    Effect.NONE: "it had no effect",
    Effect.UNKNOWN: "it failed, and its effect may have happened",
}


class LateOutcomes:
    """Commits late outcomes; called from the thread of the implementation itself.

    Args:
        live: told when nothing of the operation is left in this process.
    """

    def __init__(self, ledger: CommandLedger, spines: Spines, live: LiveOperations) -> None:
        self._ledger = ledger
        self._spines = spines
        self._live = live

    def __call__(self, owned: Owned, call: ToolCalled, dispatch: ToolDispatched, prepared: PreparedResult) -> None:
        """Commit what became known, as T2 while the run is open; best effort, and never an error.

        Where it cannot be committed (another owner, a damaged store), the operation stays indeterminate.
        """
        try:
            for _ in range(TRIES_MAX):
                if self._committed(owned, call, dispatch, prepared):
                    return
        except SafepointError:
            return
        finally:
            self._live.ended(dispatch.operation_id)

    def _committed(self, owned: Owned, call: ToolCalled, dispatch: ToolDispatched, prepared: PreparedResult) -> bool:
        """Try once; False when the run moved on meanwhile."""
        run = self._ledger.run(dispatch.run_id)
        outcome = response_of(self._spines.run(dispatch.identity), call, dispatch.operation_id, prepared)
        guard = (owned.session_id, owned.incarnation_id, owned.epoch)
        try:
            if run.open:
                self._ledger.execute(CommitOutcome(*guard, dispatch.run_id, outcome))
            else:
                self._ledger.execute(self._bundle(owned, call, dispatch, outcome, run.sequence))
        except WriteRefused as refused:
            if refused.code in (WriteRefusal.RUN_SEALED, WriteRefusal.TRANSITION_SHAPE_CONFLICT):
                return False
            raise
        return True

    def _bundle(
        self, owned: Owned, call: ToolCalled, dispatch: ToolDispatched, outcome: ToolResponded, sequence: int
    ) -> CommitRecovery:
        reconciled = ToolReconciled(
            **self._spines.run(dispatch.identity),
            operation_id=dispatch.operation_id,
            observation=Observation.LATE_OUTCOME,
            reconciler_id=RECONCILER_ID,
            reconciler_version=RECONCILER_VERSION,
        )
        decided = ToolRecoveryDecided(
            **self._spines.run(dispatch.identity),
            operation_id=dispatch.operation_id,
            disposition=Disposition.COMPLETED,
            reason=VerdictReason.RECOVERY_BUNDLE_COMPLETED,
            evidence_event_ids=(call.event_id, dispatch.event_id, reconciled.event_id, outcome.event_id),
            outcome_event_id=outcome.event_id,
        )
        return CommitRecovery(
            owned.session_id,
            owned.incarnation_id,
            owned.epoch,
            dispatch.run_id,
            sequence,
            reconciled,
            outcome,
            decided,
            notice=self._notice(owned, dispatch, outcome, decided),
        )

    def _notice(
        self, owned: Owned, dispatch: ToolDispatched, outcome: ToolResponded, decided: ToolRecoveryDecided
    ) -> NoticePosted | None:
        """What the next turn must be told when the session went on without knowing."""
        head = self._ledger.session(owned.session_id).head
        if head is None or head.run_id == dispatch.run_id:
            return None
        return NoticePosted(
            **self._spines.session(owned.session_id),
            notice_id=NoticeId(derive_id(decided.event_id, "notice")),
            sentence_id=SentenceId.LATE_SETTLEMENT,
            parameters={"tool": dispatch.tool_name, "outcome": _OUTCOMES[outcome.effect]},
        )
