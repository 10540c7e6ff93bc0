"""Owns a session, brings what is open to an end, and looks at the world again. SPEC section 10."""

from __future__ import annotations

from functools import partial

from ..domain.identifiers import OperationId, RunId, SessionId
from ..ports.views import OperationViews
from .in_thread import in_thread
from .live_operations import LiveOperations
from .ownership import Owned, SessionOwnership
from .reconcile_operations import Hands, ReconcileOperations
from .reconciliation import Reconciliation
from .record_settled_jobs import RecordSettledJobs
from .repair_session import Repair
from .stopping import Stopping
from .taking import taken


class ReconcileSession:
    """Reconciles one session, or one operation of it."""

    def __init__(
        self,
        views: OperationViews,
        ownership: SessionOwnership,
        repair: Repair,
        settle_jobs: RecordSettledJobs,
        reconcile: ReconcileOperations,
        live: LiveOperations,
    ) -> None:
        self._views = views
        self._ownership = ownership
        self._repair = repair
        self._settle_jobs = settle_jobs
        self._reconcile = reconcile
        self._live = live

    async def __call__(
        self,
        session_id: SessionId,
        hands: Hands,
        operation_id: OperationId | None = None,
        stopping: Stopping | None = None,
    ) -> Reconciliation | None:
        """Repair, then look at each operation that has no outcome; None where the operation is not the session's.

        Raises:
            SessionBusy: its owner lives, or could not be looked at.
            StoreError, WriteRefused: it could not be read or written; doing it again is safe.
        """
        run_id: RunId | None = None
        if operation_id is not None:
            row = await in_thread(partial(self._views.operation, operation_id))
            if row is None or row.run_id is None or row.session_id != session_id:
                return None
            run_id = row.run_id
        owned = await taken(self._ownership, session_id)
        try:
            repaired = await in_thread(partial(self._repair, owned))
            await in_thread(partial(self._settle_jobs, owned))
            operations = await self._reconcile(owned, hands, run_id, operation_id, stopping=stopping)
            if operation_id is None:
                named = {one.operation_id for one in operations}
                operations = (*operations, *await self._reconcile.parked_before(owned, named))
        except BaseException as error:
            await in_thread(partial(self._give_up, owned, error))
            raise
        await in_thread(partial(self._give_up, owned))
        return Reconciliation(session_id, operations, repaired)

    def _give_up(self, owned: Owned, error: BaseException | None = None) -> None:
        """Give the session up, later where something of it lives here: a delivery that was given up may go on."""
        self._live.when_over(owned.session_id, partial(self._ownership.give_up_unused, owned.session_id))
        if error is None:
            self._ownership.give_up(owned)
        else:
            self._ownership.give_up_failed(owned, error)
