"""The synchronous twin of a session. SPEC section 17."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ...application.cancel_run import CancelResult
from ...application.decide_permission import Decision
from ...application.inspect_sessions import SessionSummary
from ...application.open_call import OpenCall
from ...application.reconciliation import Reconciliation
from ...application.repair_session import Repaired
from ...application.resume_run import Continued, Parked
from ...application.run_turn import TurnResult
from ...application.settlement import Settlement
from ...application.turn_context import ALL, ContextChoice
from ...domain.events.event import Json
from ...domain.events.run import Budgets
from ...domain.events.tool import Statement
from ...domain.identifiers import OperationId, RequestId, SessionId
from ...domain.planning.facts import Drift
from ...domain.planning.outcome import Plan
from ...ports.tool_catalog import ToolContext
from ...ports.views import OperationRow, PermissionRow
from .blocking_run import SyncRecordedRun
from .happenings import Watch
from .portal import Portal
from .session import Session


class SyncSession:
    """As `Session`, for synchronous code; from any thread."""

    def __init__(self, session: Session, portal: Portal) -> None:
        self._session = session
        self._portal = portal

    @property
    def session_id(self) -> SessionId:
        """Names it in the store."""
        return self._session.session_id

    @property
    def store(self) -> Path:
        """See `Session.store`."""
        return self._session.store

    def run(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> TurnResult:
        """See `Session.run`; `watch` is called on the runtime's own thread."""
        return self._portal.call(
            partial(self._session.run, text, context=context, budgets=budgets, watch=watch, parent=parent)
        )

    def resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
    ) -> Parked | Continued:
        """See `Session.resume`; `watch` is called on the runtime's own thread."""
        return self._portal.call(
            partial(
                self._session.resume,
                accept_drift=accept_drift,
                drop_permissions=drop_permissions,
                adopt=adopt,
                reconcile=reconcile,
                budgets=budgets,
                watch=watch,
            )
        )

    @contextmanager
    def record(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> Iterator[SyncRecordedRun]:
        """See `Session.record`: `with session.record("Pay the bill.") as run`."""
        begun = self._session.record(text, context=context, budgets=budgets, parent=parent)
        with self._portal.block(begun) as run:
            yield SyncRecordedRun(run, self._portal)

    @contextmanager
    def record_resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
    ) -> Iterator[SyncRecordedRun]:
        """See `Session.record_resume`."""
        begun = self._session.record_resume(
            accept_drift=accept_drift,
            drop_permissions=drop_permissions,
            adopt=adopt,
            reconcile=reconcile,
            budgets=budgets,
        )
        with self._portal.block(begun) as run:
            yield SyncRecordedRun(run, self._portal)

    def summary(self) -> SessionSummary | None:
        """See `Session.summary`."""
        return self._portal.call(self._session.summary)

    def plan(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        budgets: Budgets | None = None,
    ) -> Plan:
        """See `Session.plan`."""
        plan = self._session.plan
        return self._portal.call(
            partial(plan, accept_drift=accept_drift, drop_permissions=drop_permissions, adopt=adopt, budgets=budgets)
        )

    def repair(self) -> Repaired:
        """See `Session.repair`."""
        return self._portal.call(self._session.repair)

    def reconcile(self, operation_id: OperationId | str | None = None) -> Reconciliation | None:
        """See `Session.reconcile`."""
        return self._portal.call(partial(self._session.reconcile, operation_id))

    def settle(
        self,
        operation_id: OperationId | str,
        statement: Statement | str,
        *,
        by: str,
        note: str,
        result: Json = None,
    ) -> Settlement:
        """See `Session.settle`."""
        return self._portal.call(
            partial(self._session.settle, operation_id, statement, by=by, note=note, result=result)
        )

    def cancel(self, *, by: str) -> CancelResult:
        """See `Session.cancel`."""
        return self._portal.call(partial(self._session.cancel, by=by))

    def unsettled(self) -> Sequence[OperationRow]:
        """See `Session.unsettled`."""
        return self._portal.call(self._session.unsettled)

    def waiting(self) -> Sequence[PermissionRow]:
        """See `Session.waiting`."""
        return self._portal.call(self._session.waiting)

    def decide(self, request_id: RequestId | str, *, approved: bool, by: str) -> Decision:
        """See `Session.decide`."""
        return self._portal.call(partial(self._session.decide, request_id, approved=approved, by=by))
