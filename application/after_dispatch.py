"""From T1 to T2: the implementation is called once, and what it came to is committed. SPEC section 8, R7 and R8."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint_if_cancelled

from ..domain.events.tool import Effect, ToolCalled, ToolDispatched
from ..domain.identifiers import key_of
from ..domain.own_copies import own
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..domain.tool_results import PreparedResult, of_this_delivery_alone, with_note
from ..ports.failpoints import Failpoint, Failpoints
from ..ports.supervisor import Supervisor
from ..ports.tool_catalog import Settled, ToolContext
from .before_dispatch import Ready, let_go
from .current_call import handed
from .implementations import Implementations
from .in_thread import in_thread
from .late_outcome import LateOutcomes
from .run_recorder import RunRecorder
from .stopping import CallCancel, Stopping
from .tool_facts import background_of, response_of

PROGRESS_CHARS_MAX = 4_000
"""Bound on one line of progress, which is shown and never kept."""


class AfterDispatch:
    """Carries dispatched calls of one run to their outcome.

    Args:
        late_outcomes: takes what an implementation comes to after it was given up.
        workspace: the run's folder, absolute.
        report: takes progress of tools, by tool name; never raises.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        implementations: Implementations,
        supervisor: Supervisor,
        late_outcomes: LateOutcomes,
        stopping: Stopping,
        failpoints: Failpoints,
        workspace: Path,
        report: Callable[[str, str], None],
    ) -> None:
        self._recorder = recorder
        self._implementations = implementations
        self._supervisor = supervisor
        self._late_outcomes = late_outcomes
        self._stopping = stopping
        self._failpoints = failpoints
        self._workspace = workspace
        self._report = report

    async def carry_out(self, call: ToolCalled, ready: Ready) -> None:
        """Call the implementation, once, and commit T2.

        Raises:
            NotOver: it did not end when it had to; there is no T2.
            StoreError, WriteRefused: T2 failed.
        """
        try:
            await checkpoint_if_cancelled()
        except get_cancelled_exc_class():
            await self._not_started(call, ready)  # the ledger shields its commits from this cancellation
            raise
        if self._stopping.is_set():
            await self._not_started(call, ready)
            return
        arguments = self._recorder.stored_arguments(call.call_id)
        self._failpoints.hit(Failpoint.IMPLEMENTATION_RUNNING)
        cancel = CallCancel(self._stopping)
        context = self._context(call, ready.dispatch, cancel)
        late = partial(self._late_outcomes, self._recorder.owned, call, ready.dispatch)
        with handed(context):  # tasks and threads of the implementation inherit it
            settled = await self._implementations.run(ready.bound, arguments, context, cancel, ready.slot, late)
        await self._commit(call, ready, settled)

    async def _not_started(self, call: ToolCalled, ready: Ready) -> None:
        await let_go(ready.slot)
        await self.not_executed(call, ready.dispatch, SentenceId.NOT_EXECUTED_CANCELLED)

    async def not_executed(self, call: ToolCalled, dispatch: ToolDispatched, sentence: SentenceId) -> None:
        """Commit T2 for an implementation that will not start: T1 is durable, the effect is none."""
        said = render(sentence, {"by": self._stopping.by})
        code = ResponseCode.NOT_EXECUTED_INTERRUPTED
        prepared = _of_all_deliveries(dispatch, PreparedResult(said, is_error=True, effect=Effect.NONE, code=code))
        await self._recorder.outcome(response_of(self._recorder.spine(), call, dispatch.operation_id, prepared))

    async def _commit(self, call: ToolCalled, ready: Ready, settled: Settled) -> None:
        operation_id, left = ready.dispatch.operation_id, settled.left_running
        prepared = _of_all_deliveries(ready.dispatch, settled.result)
        if ready.settled_before is not None:
            note = render(SentenceId.DELIVERED_WITH_EARLIER_KEY, {"operation": ready.settled_before})
            prepared = with_note(prepared, note)
        response = response_of(self._recorder.spine(), call, operation_id, prepared)
        background = None if left is None else background_of(self._recorder.spine(), operation_id, left)
        await self._recorder.outcome(response, background)
        if ready.slot is not None and left is None:
            with contextlib.suppress(Exception):  # T2 is durable: the lock file is only litter now
                await in_thread(partial(self._supervisor.forget, operation_id))

    def _context(self, call: ToolCalled, dispatch: ToolDispatched, cancel: CallCancel) -> ToolContext:
        return ToolContext(
            identity=self._recorder.identity,
            operation_id=dispatch.operation_id,
            idempotency_key=dispatch.idempotency_key or key_of(dispatch.operation_id),
            workspace=self._workspace,
            cancel=cancel,
            report=lambda line: self._report(call.tool_name, line[:PROGRESS_CHARS_MAX]),
            failpoints=self._failpoints,
            evidence=own(dispatch.evidence),
            redelivery=_delivered_before(dispatch),
        )


def _delivered_before(dispatch: ToolDispatched) -> bool:
    """Whether it is one more delivery of an earlier call's key (F9): then it has not the key of its own operation."""
    return dispatch.idempotency_key not in (None, key_of(dispatch.operation_id))


def _of_all_deliveries(dispatch: ToolDispatched, prepared: PreparedResult) -> PreparedResult:
    """What is known after a delivery: that it did nothing itself says nothing of an earlier one with its key."""
    if prepared.effect is Effect.NONE and _delivered_before(dispatch):
        return of_this_delivery_alone(prepared)
    return prepared
