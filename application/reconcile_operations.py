"""Looks at the world again for every operation that is over and has no outcome, and settles it. SPEC section 10.

By the mode that T1 recorded: a reader runs again, an idempotent call is delivered again with its recorded key, evidence
is compared, a handle is looked up; the rest is parked for a person. Each step may be killed: a second run finishes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ..domain.errors import WriteRefused
from ..domain.events.tool import Life, Observation, RecoveryMode
from ..domain.identifiers import OperationId, RunId
from ..domain.own_copies import own_event
from ..domain.reasons import RecoveryReason, WriteRefusal
from ..domain.recovery.bundle_rules import COMPLETED_BY, FILE_OBSERVATIONS, PARKED_BY
from ..domain.tool_results import PreparedResult
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from ..ports.reconciler import AskedOperation, Observed, Reconciler
from ..ports.supervisor import Supervisor
from ..ports.tool_catalog import ToolCatalog
from .async_ledger import AsyncLedger
from .deliver_again import DeliverAgain, Delivery, same_tool
from .in_thread import in_thread
from .looking_up import looked_up_within, tidied
from .ownership import Owned
from .reconcilers import Reconcilers
from .reconciliation import Completed, Left, LeftAlone, NowParked, OperationReconciled
from .recovery_bundle import Attempt, Seen, bundle_of
from .spines import Spines
from .stopping import OBSERVE_SECONDS_MAX, Stopping
from .uncertain_operations import Uncertain, UncertainOperations

RUN_AGAIN: Final = "safepoint.run_again"
DELIVERED_AGAIN: Final = "safepoint.delivered_again"
NO_PROMISE: Final = "safepoint.no_promise"
TRIES_MAX: Final = 8
"""How often it is looked again while other facts of the run come first."""
_MOVED_ON: Final = frozenset(
    {WriteRefusal.TRANSITION_SHAPE_CONFLICT, WriteRefusal.RUN_CLAIMED, WriteRefusal.BUNDLE_INVALID}
)


def _ignore(tool_name: str, line: str) -> None:
    """Nobody watches the progress."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What is at hand to look with.

    Attributes:
        catalog: the tools, which alone can be run again.
        folder: where the workspace is now; None where it is where the run worked.
        report: takes progress of tools, by tool name; never raises.
    """

    catalog: ToolCatalog
    folder: Path | None = None
    report: Callable[[str, str], None] = _ignore


class ReconcileOperations:
    """Reconciles the operations of one session, under ownership.

    Args:
        handles: looks recorded handles up where no reconciler knows the contract.
        observe_seconds_max: how long a reconciler may take to look at one operation, more than 0.
    """

    def __init__(
        self,
        ledger: AsyncLedger,
        operations: UncertainOperations,
        deliver: DeliverAgain,
        reconcilers: Reconcilers,
        handles: Reconciler,
        supervisor: Supervisor,
        spines: Spines,
        sink: LifecycleSink,
        *,
        observe_seconds_max: float = OBSERVE_SECONDS_MAX,
    ) -> None:
        self._ledger = ledger
        self._operations = operations
        self._deliver = deliver
        self._reconcilers = reconcilers
        self._handles = handles
        self._supervisor = supervisor
        self._spines = spines
        self._sink = sink
        self._observe_seconds_max = observe_seconds_max

    async def __call__(
        self,
        owned: Owned,
        hands: Hands,
        run_id: RunId | None = None,
        operation_id: OperationId | None = None,
        *,
        stopping: Stopping | None = None,
    ) -> tuple[OperationReconciled, ...]:
        """Look at each operation in turn, and settle what can be.

        Args:
            run_id: only that run's; by default all that are indeterminate.
            operation_id: of that run, only this one, whatever became of it.
            stopping: asks to leave the rest as it is.

        Raises:
            StoreError, WriteRefused: something could not be read or written; doing it again is safe.
        """
        stopping = stopping or Stopping()
        if run_id is not None and operation_id is not None:
            named = [(run_id, operation_id)]
        else:
            found = await in_thread(lambda: list(self._operations.of(owned.session_id)))
            named = [one for one in found if run_id in (None, one[0])]
        return tuple([await self._one(owned, hands, *one, stopping) for one in named])

    async def parked_before(self, owned: Owned, those: Collection[OperationId]) -> tuple[OperationReconciled, ...]:
        """The operations of the session that have no outcome because they were parked, without `those`."""
        found = await in_thread(lambda: list(self._operations.parked(owned.session_id)))
        return tuple(one for one in found if one.operation_id not in those)

    async def _one(
        self, owned: Owned, hands: Hands, run_id: RunId, operation_id: OperationId, stopping: Stopping
    ) -> OperationReconciled:
        look = partial(self._operations.look, owned.session_id, run_id, operation_id, hands.folder)
        for _ in range(TRIES_MAX):
            seen = await in_thread(look)
            if isinstance(seen, OperationReconciled):
                return seen
            if stopping.is_set():
                return seen.became(LeftAlone(Left.STOPPED))
            try:
                became = await self._settle(owned, hands, seen, stopping)
            except WriteRefused as refused:
                if refused.code in _MOVED_ON:
                    continue
                raise
            self._tell(owned, seen, became)
            mode = seen.dispatch.contract.mode
            return OperationReconciled(operation_id, run_id, seen.dispatch.tool_name, mode, became)
        return OperationReconciled(operation_id, run_id, "", None, LeftAlone(Left.MOVED_ON))

    async def _settle(
        self, owned: Owned, hands: Hands, seen: Uncertain, stopping: Stopping
    ) -> Completed | NowParked | LeftAlone:
        match seen.dispatch.contract.mode:
            case RecoveryMode.REPLAY_SAFE | RecoveryMode.IDEMPOTENT:
                return await self._delivered(owned, hands, seen, stopping)
            case RecoveryMode.RECONCILE | RecoveryMode.REATTACH:
                return await self._observed(owned, seen, stopping)
            case RecoveryMode.OUTCOME_UNKNOWN | RecoveryMode.NEVER_AUTO_RETRY:
                return await self._commit(owned, seen, Seen(Observation.UNREADABLE, NO_PROMISE), None)

    async def _delivered(
        self, owned: Owned, hands: Hands, seen: Uncertain, stopping: Stopping
    ) -> Completed | NowParked | LeftAlone:
        idempotent = seen.dispatch.contract.mode is RecoveryMode.IDEMPOTENT
        if idempotent and (detail := seen.operation.why_key_is_invalid(self._spines.now())) is not None:
            return await self._commit(owned, seen, Seen(Observation.UNREADABLE, DELIVERED_AGAIN), None, detail)
        if seen.foreign:
            return LeftAlone(Left.FOREIGN)
        if seen.unusable_workspace is not None:
            return seen.unusable_workspace
        bound = same_tool(hands.catalog, seen)
        if isinstance(bound, LeftAlone):
            return bound
        answer = await self._deliver(Delivery(owned, seen, bound, stopping, hands.report))
        if isinstance(answer, LeftAlone):
            return answer
        observation = Observation.REDELIVERED if idempotent else Observation.EFFECT_FREE
        by = Seen(observation, DELIVERED_AGAIN if idempotent else RUN_AGAIN)
        return await self._commit(owned, seen, by, answer)

    async def _observed(self, owned: Owned, seen: Uncertain, stopping: Stopping) -> Completed | NowParked | LeftAlone:
        contract = seen.dispatch.contract
        reconciler = self._reconcilers.of(contract)
        if reconciler is None and contract.mode is RecoveryMode.REATTACH:
            reconciler = self._handles
        if reconciler is None:
            return LeftAlone(Left.NO_RECONCILER, f"nobody here knows the contract {contract.contract_id}")
        if seen.unusable_workspace is not None and contract.mode is RecoveryMode.RECONCILE:
            return seen.unusable_workspace  # parking is for good, and the folder may come back
        asked = _asked(seen)
        observed = await looked_up_within(self._observe_seconds_max, reconciler, asked, stopping)
        if isinstance(observed, LeftAlone):
            return observed
        if observed.observation is Observation.HANDLE_RUNNING:
            return _waiting(observed)
        if wrong := misfit(contract.mode, observed):
            return LeftAlone(
                Left.RECONCILER_FAILED, f"{reconciler.reconciler_id} answered {wrong}, which settles nothing"
            )
        by = Seen(observed.observation, reconciler.reconciler_id, reconciler.version, observed.evidence_digest)
        await in_thread(partial(tidied, reconciler, asked))  # before the commit: later nobody comes back
        return await self._commit(owned, seen, by, observed.result, observed.detail)

    async def _commit(
        self, owned: Owned, seen: Uncertain, by: Seen, prepared: PreparedResult | None, detail: str = ""
    ) -> Completed | NowParked:
        run, session = await self._ledger.run(seen.dispatch.run_id), await self._ledger.session(owned.session_id)
        attempt = Attempt(seen.call, seen.dispatch)
        bundle = bundle_of(self._spines, owned, session, run.sequence, attempt, by, prepared)
        await self._ledger.execute(bundle)
        if prepared is None:
            return NowParked(by.observation, RecoveryReason(bundle.decided.reason), detail)
        if any(one.life is Life.SUPERVISED for one in run.deliveries_of(seen.dispatch.operation_id)):
            with contextlib.suppress(Exception):  # its lock was the proof that is not needed any more
                await in_thread(partial(self._supervisor.forget, seen.dispatch.operation_id))
        return Completed(by.observation, prepared.is_error, detail)

    def _tell(self, owned: Owned, seen: Uncertain, became: Completed | NowParked | LeftAlone) -> None:
        if isinstance(became, LeftAlone):
            return
        codes = (became.observation.value, *([became.reason.value] if isinstance(became, NowParked) else []))
        self._sink.record(
            LifecycleEvent(
                kind=LifecycleKind.OPERATION_RECONCILED,
                session_id=owned.session_id,
                run_id=seen.dispatch.run_id,
                operation_id=seen.dispatch.operation_id,
                codes=codes,
            )
        )


def _waiting(observed: Observed) -> LeftAlone:
    """Why there is no end yet: for a while, until somebody resumes a run, or for good."""
    if observed.ends_never:
        return LeftAlone(Left.HANDLE_LOST, observed.detail)
    why = Left.HANDLE_RUNNING if observed.waits_for is None else Left.CHILD_INTERRUPTED
    return LeftAlone(why, observed.detail, child=observed.waits_for)


def _asked(seen: Uncertain) -> AskedOperation:
    """What a reconciler is asked about; it may do with it what it likes."""
    later = tuple(map(own_event, seen.later))
    where = (seen.workspace, seen.workspace_identity)
    return AskedOperation(own_event(seen.call), own_event(seen.dispatch), *where, later)


def misfit(mode: RecoveryMode, observed: Observed) -> str | None:
    """Why an observation makes no bundle of a mode, None where it does: no reconciler is believed blindly."""
    completing, parking = observed.observation in COMPLETED_BY[mode], observed.observation in PARKED_BY[mode]
    if observed.observation is Observation.LATE_OUTCOME or not (completing or parking):
        return f"{observed.observation.value} is nothing to see of a {mode.value} contract"
    if completing and observed.result is None:
        return f"{observed.observation.value} without a result"
    if parking and observed.result is not None:
        return f"{observed.observation.value} with a result"
    if observed.observation in FILE_OBSERVATIONS and observed.result is not None and observed.result.is_error:
        return f"{observed.observation.value} with an error"
    return None
