"""A conversation for those who do not run it: what is known, and what a person says. SPEC sections 10 and 13."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from ...application.agent import Agent
from ...application.cancel_run import CancelResult
from ...application.decide_permission import Decision
from ...application.in_thread import in_thread
from ...application.inspect_sessions import SessionSummary
from ...application.plan_resume import PlanRequest
from ...application.reconcile_operations import Hands
from ...application.reconciliation import Reconciliation
from ...application.repair_session import Repaired
from ...application.settlement import SaidBy, Settlement, SettlementRefusal, SettlementRefused
from ...domain.events.event import Json
from ...domain.events.run import Budgets
from ...domain.events.tool import Statement
from ...domain.identifiers import OperationId, RequestId, SessionId
from ...domain.planning.facts import Drift
from ...domain.planning.outcome import Plan
from ...ports.views import OperationRow, PermissionRow
from ..composition import Composition
from ..settings import Settings
from .own_process import OwnProcess


class OverseenSession:
    """What a `Session` answers and takes without a turn of its own."""

    def __init__(self, session_id: SessionId, parts: Composition, agent: Agent) -> None:
        self.session_id = session_id
        self._composition = parts
        self._own = OwnProcess()
        self._agent = agent

    @property
    def store(self) -> Path:
        """The database file that it is kept in."""
        settings: Settings = self._parts.settings()
        return settings.store

    @property
    def _parts(self) -> Composition:
        self._own.check()
        return self._composition

    async def summary(self) -> SessionSummary | None:
        """How the session stands, without planning; None where nothing was ever recorded of it.

        `summary.state.may_be_resumed` says whether there is something to go on with.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        one: SessionSummary | None = await to_thread.run_sync(self._parts.inspect_sessions().one, self.session_id)
        return one

    async def plan(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        budgets: Budgets | None = None,
    ) -> Plan:
        """Say what `resume` would do, and change nothing: `Continue` with the history, or `Park` with every reason.

        Args:
            accept_drift, drop_permissions, adopt, budgets: as `resume` takes them.
        """
        request = plan_request(accept_drift, drop_permissions, adopt, budgets)
        planned = await to_thread.run_sync(self._parts.plan_resume(), self.session_id, self._agent, request)
        plan: Plan = planned.plan
        return plan

    async def repair(self) -> Repaired:
        """Bring what a dead process left open to a clear end. Running and resuming do that first, too.

        Raises:
            SessionBusy: its owner lives, or could not be looked at.
            StoreError, WriteRefused: it could not be written.
        """
        return await in_thread(self._repair)

    def _repair(self) -> Repaired:
        ownership, repair = self._parts.ownership(), self._parts.repair_family()
        with ownership.held(self.session_id) as owned:
            repaired: Repaired = repair(owned)
        return repaired

    async def reconcile(self, operation_id: OperationId | str | None = None) -> Reconciliation | None:
        """Look at the world again for operations without an outcome, by the mode that T1 recorded.

        Readers run again, idempotent calls are delivered again with their recorded key, evidence is compared; what
        promises nothing is parked.

        Args:
            operation_id: only this one; by default all of the session.

        Returns:
            What became of each; None where the session has no such operation.

        Raises:
            SessionBusy: its owner lives, or could not be looked at.
            StoreError, WriteRefused: it could not be read or written; doing it again is safe.
        """
        hands = Hands(self._agent.catalog, self._agent.workspace)
        named = None if operation_id is None else OperationId(operation_id)
        became: Reconciliation | None = await self._parts.reconcile_session()(self.session_id, hands, named)
        return became

    async def settle(
        self,
        operation_id: OperationId | str,
        statement: Statement | str,
        *,
        by: str,
        note: str,
        result: Json = None,
    ) -> Settlement:
        """Record what a person says of an operation whose outcome is not certain. Never to be offered to a model.

        Args:
            operation_id: which.
            statement: `completed`, `not_executed`, or `over` where nobody can see whether it still runs.
            by: who says it, for the record.
            note: why, for the record.
            result: of a completed operation, strict JSON.

        Raises:
            SettlementRefused: it does not fit what is known.
            SessionBusy: the session's owner lives and did not answer, or could not be looked at.
            StoreError, WriteRefused, FailedAtOwner: it was not recorded; saying the same again is safe.
            ValueError: there is no such statement.
        """
        if statement not in [*Statement]:
            raise ValueError(f"{statement!r} is no statement: one of {', '.join(Statement)}")
        said = SaidBy(OperationId(operation_id), Statement(statement), by, note, result)
        row = await to_thread.run_sync(self._parts.store().views.operation, said.operation_id)
        if row is not None and row.session_id != self.session_id:
            detail = f"operation {operation_id} is not one of session {self.session_id}, but of {row.session_id}"
            raise SettlementRefused(SettlementRefusal.UNKNOWN_OPERATION, detail)
        settlement: Settlement = await to_thread.run_sync(self._parts.settle_operation(), said)
        return settlement

    async def cancel(self, *, by: str) -> CancelResult:
        """Stop what is open in the session, wherever its owner lives.

        Args:
            by: who stops it, for the record.

        Raises:
            SessionBusy: its owner lives and did not answer, or could not be looked at.
            SessionQuarantined: its open run is damaged.
            StoreError, WriteRefused, FailedAtOwner: it was not recorded.
        """
        stopped: CancelResult = await to_thread.run_sync(self._parts.cancel_run(), self.session_id, by)
        return stopped

    async def unsettled(self) -> Sequence[OperationRow]:
        """The operations whose effect is in doubt: with `operation_id`, `tool_name`, `mode` and what is known.

        Raises:
            StoreUnavailable, StoreDamaged: it could not be looked at.
        """
        rows: Sequence[OperationRow] = await to_thread.run_sync(self._parts.store().views.unsettled, self.session_id)
        return rows

    async def waiting(self) -> Sequence[PermissionRow]:
        """The questions that wait for a person's decision.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        rows: Sequence[PermissionRow] = await to_thread.run_sync(
            self._parts.inspect_sessions().waiting, self.session_id
        )
        return rows

    async def decide(self, request_id: RequestId | str, *, approved: bool, by: str) -> Decision:
        """Answer such a question, also of a run that has ended: the next one then takes the answer over.

        Args:
            request_id: of the question.
            approved: whether the call may be dispatched, once.
            by: who says so, for the record.

        Raises:
            UnknownQuestion: there is none in this session.
            SessionBusy, SessionQuarantined, StoreError, WriteRefused, FailedAtOwner: it was not recorded.
        """
        use_case = self._parts.decide_permission()
        ask = partial(use_case, RequestId(request_id), approved=approved, by=by, session_id=self.session_id)
        decision: Decision = await to_thread.run_sync(ask)
        return decision


def plan_request(
    accept_drift: Iterable[Drift | str], drop_permissions: bool, adopt: bool, budgets: Budgets | None
) -> PlanRequest:
    """What a caller asks of a plan, from the words that the face takes.

    Raises:
        ValueError: `accept_drift` names what cannot be accepted.
    """
    named = (accept_drift,) if isinstance(accept_drift, str) else tuple(accept_drift)
    if unknown := [one for one in named if one not in [*Drift]]:
        raise ValueError(f"{unknown[0]!r} is no drift that can be accepted: one of {', '.join(Drift)}")
    return PlanRequest(
        accepted_drift=frozenset(Drift(one) for one in named),
        drop_permissions=drop_permissions,
        adopt=adopt,
        budgets=budgets,
    )
