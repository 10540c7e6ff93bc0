"""One conversation, as an embedding program works with it. SPEC sections 10, 13, 14 and 17."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from anyio import to_thread
from anyio.abc import TaskGroup

from ...application.agent import Agent
from ...application.cancel_run import CancelResult
from ...application.child_runs import ParentCall
from ...application.decide_permission import Decision
from ...application.inspect_sessions import SessionSummary
from ...application.live_runs import LiveRun
from ...application.open_call import OpenCall
from ...application.plan_resume import PlanRequest
from ...application.reconcile_operations import Hands
from ...application.reconciliation import Reconciliation
from ...application.record_run import RecordRun
from ...application.repair_session import Repaired
from ...application.resume_run import Continued, Parked
from ...application.run_turn import TurnResult
from ...application.settlement import SaidBy, Settlement, SettlementRefusal, SettlementRefused
from ...application.turn_context import ALL, ContextChoice
from ...domain.events.event import Json
from ...domain.events.run import Budgets
from ...domain.events.tool import Statement
from ...domain.identifiers import OperationId, RequestId, SessionId
from ...domain.planning.facts import Drift
from ...domain.planning.outcome import Plan
from ...ports.provider_failures import ProviderUnusable
from ...ports.tool_catalog import ToolContext
from ...ports.views import OperationRow, PermissionRow
from ..composition import Composition
from ..models.named import NamedModel
from ..settings import Settings
from .happenings import Happenings, RunBegan, RunFinished, Watch, Watchers
from .own_process import OwnProcess
from .recorded import RecordedRun


class Session:
    """A conversation; of `Runtime.session`. All methods belong to the event loop of the runtime, in the process that
    opened it (`OpenedBeforeFork`).

    Attributes:
        session_id: names it in the store.
    """

    def __init__(self, session_id: SessionId, parts: Composition, agent: Agent, tasks: TaskGroup) -> None:
        self.session_id = session_id
        self._composition = parts
        self._own = OwnProcess()
        self._agent = agent
        self._tasks = tasks
        self._watchers = Watchers(session_id)

    @property
    def store(self) -> Path:
        """The database file that it is kept in."""
        settings: Settings = self._parts.settings()
        return settings.store

    @property
    def _parts(self) -> Composition:
        self._own.check()
        return self._composition

    # ---- we run the loop --------------------------------------------------------------------------------------------

    async def run(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> TurnResult:
        """Run one user message to its end.

        Args:
            text: the user's message, not empty.
            context: what of the earlier turns the model is shown; by default all.
            budgets: what the turn may use, its continuations included.
            watch: told what happens, as `events` are.
            parent: the call that starts it as its child run: the context of a tool that is declared with `child_run`,
                or the open call of such a tool. A call starts one: asked for the same again, what it came to is
                answered.

        Raises:
            ChildRunExists: the call has started its child run, in another session or with another message, or that has
                not ended.
            ParentNotOpen: the call has its outcome.
            SessionBusy: another process, or another task of this one, works on the session.
            SessionQuarantined: its newest run is damaged.
            HistoryUnusable, HistoryTooLarge: the earlier turns cannot be shown; nothing was begun.
            ProviderUnusable: the runtime was opened without a model that can be asked; nothing was begun.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
        """
        run_turn = self._parts.run_turn()
        self._check_asked()
        screen, tell = self._watchers.screen(watch)
        result: TurnResult | None = None
        try:
            result = await run_turn(
                self.session_id,
                text,
                self._agent,
                screen,
                partial(_began, tell),
                context=context,
                budgets=budgets,
                parent=_parent(parent),
            )
        finally:
            tell(RunFinished(self.session_id, None if result is None else result.outcome))
        return result

    async def resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
    ) -> Parked | Continued:
        """Continue the interrupted run in a new one, or say why it is parked.

        Args:
            accept_drift: what may differ from what the run recorded: `tools`, `model`, `provider`, `account`,
                `system_prompt`, `protocol`, `permission_policy`. It is recorded, and told to the model.
            drop_permissions: open questions are dropped without an answer.
            adopt: a run that the store cannot vouch for is continued knowingly.
            reconcile: operations without outcome are looked at again first, which may run readers and deliver
                idempotent calls again.
            budgets: what the turn may use from now on, its lineage included; by default as recorded.
            watch: told what happens.

        Raises:
            ProviderUnusable: as `run`.
            StoreError, WriteRefused: the store could not be written, or the new run not be recorded any further.
            ValueError: `accept_drift` names what cannot be accepted.
        """
        request = _request(accept_drift, drop_permissions, adopt, budgets)
        resume_run = self._parts.resume_run()
        self._check_asked()
        screen, tell = self._watchers.screen(watch)
        result: Parked | Continued | None = None
        try:
            result = await resume_run(
                self.session_id, self._agent, screen, partial(_began, tell), request, reconcile=reconcile
            )
        finally:
            tell(RunFinished(self.session_id, result.outcome if isinstance(result, Continued) else None))
        return result

    def _check_asked(self) -> None:
        if isinstance(self._agent.provider, NamedModel):
            raise ProviderUnusable(
                "The runtime has no model that it could ask.",
                "Open it with `model=`; for a loop of your own, take `Session.record` or `record_resume`.",
            )

    def events(self) -> Happenings:
        """See what happens here from now on, until the next run has finished: an asynchronous iterator.

        Partial text and thinking, calls and their answers, progress of tools. Nothing of it is durable: what counts is
        what is recorded.
        """
        return self._watchers.watch()

    # ---- you run the loop -------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def record(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> AsyncIterator[RecordedRun]:
        """A new turn for a loop of one's own: `async with session.record("Pay the bill.") as run`.

        Left normally the run ends completed, by an exception it ends failed; cancelled, or killed, it is interrupted
        and can be resumed.

        Args:
            text: the user's message, not empty.
            context: what of the earlier turns the model is shown; by default all.
            budgets: what the turn may use, its continuations included; `RecordedRun.check` watches them.
            parent: the call that starts it as its child run, as `run` takes it.

        Raises:
            ChildRunExists: the call has started its child run; `error.found` says how that stands.
            ParentNotOpen: the call has its outcome.
            SessionBusy, SessionQuarantined, HistoryUnusable, HistoryTooLarge: nothing was begun.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
        """
        record: RecordRun = self._parts.record_run()
        begun = record.turn(
            self.session_id, text, self._agent, self._tasks, context=context, budgets=budgets, parent=_parent(parent)
        )
        async with begun as run:
            yield RecordedRun(run, self._agent)

    @asynccontextmanager
    async def record_resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
    ) -> AsyncIterator[RecordedRun]:
        """The continuation of the interrupted run for a loop of one's own; its history is what the model is shown.

        Args:
            accept_drift, drop_permissions, adopt, reconcile, budgets: as `resume` takes them.

        Raises:
            ResumeParked: it is not continued; `error.parked` has every reason.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
            ValueError: `accept_drift` names what cannot be accepted.
        """
        request = _request(accept_drift, drop_permissions, adopt, budgets)
        hands = Hands(self._agent.catalog, self._agent.workspace) if reconcile else None
        record: RecordRun = self._parts.record_run()
        async with record.resume(self.session_id, self._agent, self._tasks, request, hands) as run:
            yield RecordedRun(run, self._agent)

    # ---- looking, and what a person says ----------------------------------------------------------------------------

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
        request = _request(accept_drift, drop_permissions, adopt, budgets)
        planned = await to_thread.run_sync(self._parts.plan_resume(), self.session_id, self._agent, request)
        plan: Plan = planned.plan
        return plan

    async def repair(self) -> Repaired:
        """Bring what a dead process left open to a clear end. Running and resuming do that first, too.

        Raises:
            SessionBusy: its owner lives, or could not be looked at.
            StoreError, WriteRefused: it could not be written.
        """
        return await to_thread.run_sync(self._repair)

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


def _parent(given: ToolContext | OpenCall | None) -> ParentCall | None:
    return None if given is None else ParentCall.of(given.context if isinstance(given, OpenCall) else given)


def _began(tell: Watch, live: LiveRun) -> None:
    identity = live.recorder.identity
    tell(RunBegan(identity.session_id, identity.run_id))


def _request(
    accept_drift: Iterable[Drift | str], drop_permissions: bool, adopt: bool, budgets: Budgets | None
) -> PlanRequest:
    named = (accept_drift,) if isinstance(accept_drift, str) else tuple(accept_drift)
    if unknown := [one for one in named if one not in [*Drift]]:
        raise ValueError(f"{unknown[0]!r} is no drift that can be accepted: one of {', '.join(Drift)}")
    return PlanRequest(
        accepted_drift=frozenset(Drift(one) for one in named),
        drop_permissions=drop_permissions,
        adopt=adopt,
        budgets=budgets,
    )
