"""Runs an implementation again after a crash: a reader for a fresh result, an idempotent call with its recorded key.

SPEC sections 8 and 10. Nothing here settles the operation: what the implementation came to is for the caller to commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..domain.commands import StartRedelivery
from ..domain.events.tool import Effect, Life, RecoveryMode, ToolRedeliveryStarted
from ..domain.identifiers import key_of
from ..domain.own_copies import own
from ..domain.tool_results import PreparedResult
from ..ports.failpoints import Failpoint, Failpoints
from ..ports.supervisor import SupervisedSlot, Supervisor, SupervisorUnavailable
from ..ports.tool_catalog import BoundCall, Settled, ToolCatalog, ToolContext
from .async_ledger import AsyncLedger
from .call_answers import OutcomeNotDeclared
from .current_call import handed
from .implementations import Implementations
from .in_thread import in_thread
from .late_outcome import LateOutcomes
from .live_operations import LiveOperations
from .own_task import in_a_child_task
from .ownership import Owned
from .reconciliation import Left, LeftAlone
from .spines import Spines
from .stopping import CallCancel, Stopping
from .uncertain_operations import Uncertain
from .waiting import NotOver, tell_when_over

DETAIL_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Delivery:
    """One more delivery of an operation.

    Attributes:
        bound: the tool as it is now, with the contract that T1 recorded.
        report: takes progress, by tool name; never raises.
    """

    owned: Owned
    uncertain: Uncertain
    bound: BoundCall
    stopping: Stopping
    report: Callable[[str, str], None]


class DeliverAgain:
    """Delivers operations of ended runs again.

    Args:
        live: told of every operation that this process cannot call over.
        late_outcomes: takes what an implementation comes to after it was given up.
    """

    def __init__(
        self,
        ledger: AsyncLedger,
        spines: Spines,
        supervisor: Supervisor,
        live: LiveOperations,
        late_outcomes: LateOutcomes,
        failpoints: Failpoints,
    ) -> None:
        self._ledger = ledger
        self._spines = spines
        self._supervisor = supervisor
        self._live = live
        self._late_outcomes = late_outcomes
        self._failpoints = failpoints

    async def __call__(self, delivery: Delivery) -> PreparedResult | LeftAlone:
        """Call the implementation, once; an idempotent call is recorded as started before.

        A cancellation goes on when it has ended, or is left to its thread: nobody settles by a delivery that was cut.

        Raises:
            WriteRefused, StoreError: that it starts could not be recorded, so nothing was delivered.
        """
        return await in_a_child_task(partial(self._deliver, delivery))

    async def _deliver(self, delivery: Delivery) -> PreparedResult | LeftAlone:
        dispatch, bound = delivery.uncertain.dispatch, delivery.bound
        slot: SupervisedSlot | None = None
        if bound.life is Life.SUPERVISED:
            try:
                slot = await in_thread(partial(self._supervisor.prepare, dispatch.operation_id))
            except SupervisorUnavailable as error:
                return LeftAlone(Left.NOT_DELIVERED, error.detail)
        over = True
        self._live.began(dispatch.operation_id, dispatch.session_id)
        try:
            await self._start(delivery, slot)
            return _settling(delivery, await self._run(delivery, slot))
        except NotOver as error:
            over = bound.life is Life.SUPERVISED  # its lock tells; a thread is in this process alone
            if not over:
                tell_when_over(error, partial(self._live.ended, dispatch.operation_id))
            return LeftAlone(Left.MAY_BE_RUNNING, "the delivery did not end when it had to")
        except OutcomeNotDeclared:
            return LeftAlone(Left.STOPPED)
        finally:
            if over:
                self._live.ended(dispatch.operation_id)

    async def _start(self, delivery: Delivery, slot: SupervisedSlot | None) -> None:
        dispatch = delivery.uncertain.dispatch
        if dispatch.contract.mode is not RecoveryMode.IDEMPOTENT:
            return
        assert dispatch.idempotency_key is not None  # T1 refuses an idempotent dispatch without
        started = ToolRedeliveryStarted(
            **self._spines.run(dispatch.identity),
            operation_id=dispatch.operation_id,
            idempotency_key=dispatch.idempotency_key,
            incarnation_id=delivery.owned.incarnation_id,
            life=delivery.bound.life,
        )
        owned = delivery.owned
        committed = False
        try:
            await self._ledger.execute(StartRedelivery(*owned.guard, dispatch.run_id, started, started.occurred_at))
            committed = True
        finally:
            if not committed and slot is not None:
                with contextlib.suppress(Exception):  # it ends with this process at the latest
                    await in_thread(slot.release)

    async def _run(self, delivery: Delivery, slot: SupervisedSlot | None) -> Settled:
        implementations = Implementations(delivery.stopping)
        cancel = CallCancel(delivery.stopping)
        uncertain = delivery.uncertain
        self._failpoints.hit(Failpoint.IMPLEMENTATION_RUNNING)
        context, late = self._context(delivery, cancel), partial(self._late, delivery)
        with handed(context):
            settled = await implementations.run(delivery.bound, uncertain.arguments, context, cancel, slot, late)
        self._failpoints.hit(Failpoint.EFFECT_DONE)
        return settled

    def _late(self, delivery: Delivery, prepared: PreparedResult) -> None:
        dispatch = delivery.uncertain.dispatch
        if isinstance(_settling(delivery, Settled(prepared)), LeftAlone):
            self._live.ended(dispatch.operation_id)
            return
        self._late_outcomes(delivery.owned, delivery.uncertain.call, dispatch, prepared)

    def _context(self, delivery: Delivery, cancel: CallCancel) -> ToolContext:
        uncertain = delivery.uncertain
        dispatch = uncertain.dispatch
        return ToolContext(
            identity=dispatch.identity,
            operation_id=dispatch.operation_id,
            idempotency_key=dispatch.idempotency_key or key_of(dispatch.operation_id),
            workspace=uncertain.workspace,
            cancel=cancel,
            report=lambda line: delivery.report(dispatch.tool_name, line),
            failpoints=self._failpoints,
            evidence=own(dispatch.evidence),
            redelivery=dispatch.contract.mode is RecoveryMode.IDEMPOTENT,
        )


def _settling(delivery: Delivery, settled: Settled) -> PreparedResult | LeftAlone:
    """The outcome, if it is one of the operation: an answer of a second delivery that says that *it* did nothing, or
    does not know, says nothing of the first.
    """
    prepared, mode = settled.result, delivery.uncertain.dispatch.contract.mode
    if settled.left_running is not None:
        return LeftAlone(Left.MAY_BE_RUNNING, "the delivery left processes running")
    if prepared.is_error and delivery.stopping.is_set():
        return LeftAlone(Left.STOPPED)
    if mode is RecoveryMode.IDEMPOTENT and prepared.effect is not Effect.DONE:
        return LeftAlone(Left.NOT_DELIVERED, str(prepared.result)[:DETAIL_CHARS_MAX])
    return prepared


def same_tool(catalog: ToolCatalog, uncertain: Uncertain) -> BoundCall | LeftAlone:
    """The tool that was called, if it is here and promises exactly what it did at T1; F6."""
    recorded = uncertain.dispatch.contract
    bound = catalog.bind(uncertain.call.tool_name, uncertain.arguments)
    if not isinstance(bound, BoundCall):
        return LeftAlone(Left.TOOL_CHANGED, f"{uncertain.call.tool_name} is not here, or takes other arguments")
    if bound.elsewhere:
        return LeftAlone(Left.TOOL_CHANGED, f"{uncertain.call.tool_name} is carried out by another loop, not here")
    now = bound.contract
    if (now.mode, now.contract_id, now.version, now.digest) != (
        recorded.mode,
        recorded.contract_id,
        recorded.version,
        recorded.digest,
    ):
        return LeftAlone(Left.TOOL_CHANGED, f"{uncertain.call.tool_name} promises something else than it did")
    return bound
