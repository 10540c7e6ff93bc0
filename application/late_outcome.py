"""The outcome of an implementation that was given up and returned after all, while its owner still lives.

SPEC sections 7 and 10: after the terminal event it is a recovery bundle with the observation `late_outcome`.
"""

from __future__ import annotations

from ..domain.commands import CommitOutcome
from ..domain.errors import SafepointError, WriteRefused
from ..domain.events.tool import Observation, ToolCalled, ToolDispatched
from ..domain.reasons import WriteRefusal
from ..domain.tool_results import PreparedResult
from .ledger import CommandLedger
from .live_operations import LiveOperations
from .ownership import Owned
from .recovery_bundle import Attempt, Seen, bundle_of
from .spines import Spines
from .tool_facts import response_of

RECONCILER_ID = "safepoint.late_outcome"
TRIES_MAX = 8
"""How often it is tried while other facts of the run come first."""


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
        try:
            if run.open:
                outcome = response_of(self._spines.run(dispatch.identity), call, dispatch.operation_id, prepared)
                self._ledger.execute(CommitOutcome(*owned.guard, dispatch.run_id, outcome))
            else:
                session = self._ledger.session(owned.session_id)
                attempt, seen = Attempt(call, dispatch), Seen(Observation.LATE_OUTCOME, RECONCILER_ID)
                bundle = bundle_of(self._spines, owned, session, run.sequence, attempt, seen, prepared)
                self._ledger.execute(bundle)
        except WriteRefused as refused:
            if refused.code in (WriteRefusal.RUN_SEALED, WriteRefusal.TRANSITION_SHAPE_CONFLICT):
                return False
            raise
        return True
