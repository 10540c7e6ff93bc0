"""Continues an interrupted run as a new one: plan, revalidate, claim, start; only then the provider. SPEC 14."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from anyio import to_thread

from ..domain.identifiers import ClaimId, RunId, SessionId
from ..domain.planning.outcome import Continue, Note, Park, Reason
from ..domain.planning.revalidation import compare
from ..domain.reasons import ParkReason, RevalidationCode
from ..ports.checkpoints import Checkpoint
from ..ports.failpoints import Failpoint, Failpoints
from ..ports.ids import Ids
from ..ports.incarnations import Liveness
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from .agent import Agent, Binding
from .agent_loop import RunOutcome
from .async_ledger import AsyncLedger
from .begin_continuation import BeginContinuation
from .capture_content import NOWHERE, CaptureContent
from .drive_run import DriveRun
from .in_thread import in_thread
from .live_runs import LiveRun
from .ownership import Owned, SessionBusy, SessionOwnership
from .plan_resume import PlanRequest, PlanResume, fresh_ids
from .reconcile_operations import Hands, ReconcileOperations
from .reconciliation import OperationReconciled
from .record_settled_jobs import RecordSettledJobs
from .repair_session import Repair, Repaired
from .run_agent import Screen
from .run_checkpoints import CheckpointsUnusable
from .spines import Spines
from .start_turn import Begun, BoundContent
from .taking import taken


@dataclass(frozen=True, slots=True)
class Parked:
    """The run is kept as it is.

    Attributes:
        reasons: every failing gate, in their order.
        changed: what differed between the plan and the world right before execution; the reasons are then of the second
            look.
        repaired: what was closed before the plan was made, and `reconciled` what was then looked at again.
    """

    session_id: SessionId
    reasons: tuple[Reason, ...]
    notes: tuple[Note, ...] = ()
    changed: tuple[RevalidationCode, ...] = ()
    repaired: Repaired | None = None
    reconciled: tuple[OperationReconciled, ...] = ()

    @property
    def codes(self) -> tuple[ParkReason, ...]:
        """Each code once, in order."""
        return tuple(dict.fromkeys(reason.code for reason in self.reasons))


@dataclass(frozen=True, slots=True)
class Continued:
    """A new run went on from the boundary, to its own end."""

    session_id: SessionId
    source_run_id: RunId
    run_id: RunId
    claim_id: ClaimId
    outcome: RunOutcome
    notes: tuple[Note, ...] = ()
    repaired: Repaired | None = None
    reconciled: tuple[OperationReconciled, ...] = ()


@dataclass(frozen=True, slots=True)
class Beginning:
    """A continuation that has its first commit; nothing was asked of a provider yet."""

    begun: Begun
    plan: Continue
    repaired: Repaired
    reconciled: tuple[OperationReconciled, ...] = ()

    def continued(self, outcome: RunOutcome) -> Continued:
        """What became of it."""
        session_id, run_id = self.begun.identity.session_id, self.begun.identity.run_id
        plan, source = self.plan, self.plan.source.run_id
        before = (plan.notes, self.repaired, self.reconciled)
        return Continued(session_id, source, run_id, plan.claim_id, outcome, *before)


_UNWRITABLE: Final = frozenset(
    {ParkReason.STORE_UNAVAILABLE, ParkReason.LEDGER_BEHIND_ANCHOR, ParkReason.FOREIGN_RUN_NOT_ADOPTED}
)


class ResumeRun:
    """The one way from an interrupted run to a new one, for every host."""

    def __init__(
        self,
        ledger: AsyncLedger,
        ownership: SessionOwnership,
        repair: Repair,
        settle_jobs: RecordSettledJobs,
        plan: PlanResume,
        drive: DriveRun,
        spines: Spines,
        ids: Ids,
        failpoints: Failpoints,
        sink: LifecycleSink,
        reconcile: ReconcileOperations,
        capture: CaptureContent = NOWHERE,
    ) -> None:
        self._ledger = ledger
        self._begin_continuation = BeginContinuation(ledger, spines, failpoints)
        self._ownership = ownership
        self._repair = repair
        self._settle_jobs = settle_jobs
        self._plan = plan
        self._drive = drive
        self._spines = spines
        self._ids = ids
        self._failpoints = failpoints
        self._sink = sink
        self._reconcile = reconcile
        self._capture = capture

    async def __call__(
        self,
        session_id: SessionId,
        agent: Agent,
        screen: Screen,
        started: Callable[[LiveRun], None] = lambda run: None,
        request: PlanRequest | None = None,
        *,
        reconcile: bool = False,
    ) -> Parked | Continued:
        """Repair, plan, and continue or park.

        Args:
            started: told how to stop the new run.
            request: what the caller asks for; by default the session's head run, with nothing accepted.
            reconcile: whether operations of the run without outcome are looked at again before the plan is made, which
                may run readers and deliver idempotent calls again.

        Raises:
            StoreError, WriteRefused: the store could not be written, or the new run could not be recorded any further.
        """
        hands = Hands(agent.catalog, agent.workspace, screen.report) if reconcile else None
        beginning = await self.begin(session_id, agent, request, hands)
        if isinstance(beginning, Parked):
            return beginning
        outcome = await self._drive(beginning.begun, agent, screen, started)
        self._failpoints.hit(Failpoint.CONTINUATION_ENDED)
        return beginning.continued(outcome)

    async def begin(
        self,
        session_id: SessionId,
        agent: Agent,
        request: PlanRequest | None = None,
        hands: Hands | None = None,
    ) -> Parked | Beginning:
        """Repair, plan, claim and start, for whoever drives the new run; parks and raises as resuming does.

        Args:
            hands: to reconcile with before the plan is made; None leaves what is indeterminate as it is.
        """
        request = request or PlanRequest()
        beginning = await self._begin_or_park(session_id, agent, request, hands)
        if isinstance(beginning, Parked):
            self._tell_parked(beginning, request.run_id)
        return beginning

    async def _begin_or_park(
        self, session_id: SessionId, agent: Agent, request: PlanRequest, hands: Hands | None
    ) -> Parked | Beginning:
        look = await to_thread.run_sync(self._plan, session_id, agent, request)
        if (
            isinstance(look.plan, Park)
            and not look.repair_pending
            and not (hands and _may_be_reconciled(look.plan))
            and not await self._child_waits(look.plan, session_id)
        ):
            # Nothing is written: a session that never was stays so.
            return Parked(session_id, look.plan.reasons, look.plan.notes)
        try:
            owned = await taken(self._ownership, session_id)
        except SessionBusy as busy:
            return Parked(session_id, (busy_reason(busy),))
        try:
            ready = await self._ready(owned, agent, request, hands)
        except BaseException as error:
            await in_thread(partial(self._ownership.give_up_failed, owned, error))
            raise
        if isinstance(ready, Parked):
            await in_thread(partial(self._ownership.give_up, owned))
            return ready
        plan, repaired, reconciled, content = ready
        try:
            begun = await self._begin_continuation(owned, plan, content)
        except BaseException as error:
            await in_thread(partial(self._ownership.give_up_failed, owned, error))  # kept where a claim stands
            raise
        if isinstance(begun, Reason):
            await in_thread(partial(self._ownership.give_up, owned))
            changed = (RevalidationCode.CONTINUATION_CLAIM_CONFLICT,)
            return Parked(session_id, (begun,), plan.notes, changed, repaired, reconciled)
        return Beginning(begun, plan, repaired, reconciled)

    async def _child_waits(self, plan: Park, session_id: SessionId) -> bool:
        """Whether children of a parked session are repaired all the same, in a store that may be written."""
        return _UNWRITABLE.isdisjoint(plan.codes) and await to_thread.run_sync(self._repair.child_waits, session_id)

    async def _ready(
        self, owned: Owned, agent: Agent, request: PlanRequest, hands: Hands | None
    ) -> Parked | tuple[Continue, Repaired, tuple[OperationReconciled, ...], BoundContent | None]:
        """Repair, look at the world again where that is allowed, plan, and look once more, at the run that was planned
        for.
        """
        repaired = await in_thread(partial(self._repair, owned))
        await in_thread(partial(self._settle_jobs, owned))
        reconciled: tuple[OperationReconciled, ...] = ()
        if hands is not None:
            head = (await self._ledger.session(owned.session_id)).head
            reconciled = () if head is None else await self._reconcile(owned, hands, head.run_id)
        fresh = fresh_ids(self._ids.fresh(ClaimId), self._spines.identity(owned.session_id))
        plan = (await to_thread.run_sync(self._plan, owned.session_id, agent, request, fresh)).plan
        if isinstance(plan, Park):
            return Parked(owned.session_id, plan.reasons, plan.notes, (), repaired, reconciled)
        self._tell(LifecycleKind.PLAN_APPROVED, owned.session_id, plan.source.run_id, plan.claim_id)
        pinned = replace(request, run_id=plan.source.run_id)
        again = (await to_thread.run_sync(self._plan, owned.session_id, agent, pinned, fresh)).plan
        if changed := compare(plan, again):
            reasons = again.reasons if isinstance(again, Park) else ()
            return Parked(owned.session_id, reasons, again.notes, changed, repaired, reconciled)
        try:
            return plan, repaired, reconciled, await self._content(plan, agent)
        except CheckpointsUnusable as error:
            reason = Reason(ParkReason.MODE_MISMATCH, {"mode": "checkpoint", "detail": str(error)})
            return Parked(owned.session_id, (reason,), plan.notes, (), repaired, reconciled)

    async def _content(self, plan: Continue, agent: Agent) -> BoundContent | None:
        """What the new run is bound to: what its lineage was, or where it was to none, what is insisted on now."""
        bound = plan.checkpoint
        if bound is not None and bound.baseline is not None:
            return BoundContent(Checkpoint(*bound.baseline) if bound.as_kept else None, bound.epoch)
        return BoundContent(await self._capture(agent)) if agent.binding is Binding.ALWAYS else None

    def _tell_parked(self, parked: Parked, run_id: RunId | None) -> None:
        codes = tuple(code.value for code in (*parked.codes, *parked.changed))
        kind = LifecycleKind.PLAN_PARKED
        self._sink.record(LifecycleEvent(kind=kind, session_id=parked.session_id, run_id=run_id, codes=codes))

    def _tell(self, kind: LifecycleKind, session_id: SessionId, run_id: RunId, claim_id: ClaimId) -> None:
        self._sink.record(LifecycleEvent(kind=kind, session_id=session_id, run_id=run_id, claim_id=claim_id))


def _may_be_reconciled(plan: Park) -> bool:
    """Whether looking again can help, in a store that may be written."""
    return ParkReason.DANGLING_TOOL_STATE in plan.codes and _UNWRITABLE.isdisjoint(plan.codes)


def busy_reason(busy: SessionBusy) -> Reason:
    """Why a session that another owner has is not touched."""
    pid = None if busy.owner is None else busy.owner.pid
    could_look = busy.liveness is not Liveness.COULD_NOT_LOOK
    code = ParkReason.SESSION_BUSY if could_look else ParkReason.CONTINUATION_AUTHORITY_UNAVAILABLE
    return Reason(code, {"pid": pid, "detail": str(busy)})
