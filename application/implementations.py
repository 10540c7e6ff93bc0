"""Runs implementations: in a thread, on the event loop, or supervised; within their time. SPEC section 8.

What comes back is what T2 records. Nothing here touches the ledger.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import anyio

from ..domain.events.event import Json
from ..domain.events.tool import Effect
from ..domain.tool_results import PreparedResult, refused, unkept_result
from ..ports.supervisor import SupervisedSlot
from ..ports.tool_catalog import (
    AsyncCall,
    BoundCall,
    OutcomeNotSeen,
    Settled,
    SupervisedCall,
    SyncCall,
    ToolContext,
)
from .abandonable_call import AbandonableCall, Ended, Raised, Returned, joined
from .call_answers import OutcomeNotDeclared
from .stopping import CallCancel, Stopping
from .supervised_calls import SupervisedCalls
from .waiting import NotOver, Waited, ended_early, wait

FORMAT_SECONDS_MAX = 10.0


class Implementations:
    """Calls the tools of one run.

    Args:
        stopping: says when live work should end, and how long it is waited for.
        format_seconds_max: how long formatting a result may take, more than 0.
    """

    def __init__(self, stopping: Stopping, *, format_seconds_max: float = FORMAT_SECONDS_MAX) -> None:
        self._stopping = stopping
        self._supervised = SupervisedCalls(stopping)
        self._format_seconds_max = format_seconds_max

    async def run(
        self,
        bound: BoundCall,
        arguments: dict[str, Json],
        context: ToolContext,
        cancel: CallCancel,
        slot: SupervisedSlot | None,
        late: Callable[[PreparedResult], None],
    ) -> Settled:
        """Call the implementation and prepare its answer; a cancellation of the task waits until that is done.

        Args:
            slot: for a supervised call, whose lock is held.
            late: told from a thread, once, what a call in a thread came to after NotOver was raised for it.

        Raises:
            NotOver: it had to end and did not, or that could not be seen.
            OutcomeNotDeclared: it was ended because whoever waited was cancelled, and nobody knows what it did.
        """
        match bound.implementation:
            case SyncCall() as call:
                return Settled(await self._in_thread(bound, call, arguments, context, cancel, late))
            case AsyncCall() as call:
                return Settled(await self._on_loop(bound, call, arguments, context))
            case SupervisedCall() as call:
                assert slot is not None
                return await self._supervised.run(bound, call, arguments, context, slot)

    async def _in_thread(
        self,
        bound: BoundCall,
        call: SyncCall,
        arguments: dict[str, Json],
        context: ToolContext,
        cancel: CallCancel,
        late: Callable[[PreparedResult], None],
    ) -> PreparedResult:
        thread = AbandonableCall(lambda: call.run(arguments, context), f"safepoint {bound.tool_name}")
        if not thread.start():
            return refused("there is no room for another thread")
        waited = await wait(self._stopping, bound, thread.finished)
        if not bound.needs_permission:
            thread.give_up()  # an abandoned reader does not count
        elif thread.ended is None:
            cancel.set()
            if waited is Waited.TIME_IS_UP:
                with anyio.move_on_after(self._stopping.bound_seconds, shield=True):
                    await thread.finished()
            if thread.give_up(lambda ended: late(self._late(bound, ended))):
                raise NotOver
        ended = thread.ended
        if waited is Waited.ENDED and isinstance(ended, Returned) and inspect.isawaitable(ended.value):
            begun = ended.value
            return await self._on_loop(bound, AsyncCall(lambda *_: begun), arguments, context)
        return await self._answer(bound, context, ended, waited)

    async def _on_loop(
        self, bound: BoundCall, call: AsyncCall, arguments: dict[str, Json], context: ToolContext
    ) -> PreparedResult:
        ended: list[Ended[object]] = []

        async def work() -> None:
            try:
                value = await call.run(arguments, context)
                while inspect.isawaitable(value):  # of an async function whose result is one more of them
                    value = await value
                ended.append(Returned(value))
            except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a tool raises is an answer)
                ended.append(Raised(error))

        async def alone() -> None:
            # In a group of its own, a tool that cancels itself does not look like a cancellation of the run.
            async with anyio.create_task_group() as group:
                group.start_soon(work)
            if not ended:
                ended.append(Raised(RuntimeError("it was cancelled from within")))

        waited = await wait(self._stopping, bound, alone)
        return await self._answer(bound, context, ended[0] if ended else None, waited)

    async def _answer(
        self, bound: BoundCall, context: ToolContext, ended: Ended[object] | None, waited: Waited
    ) -> PreparedResult:
        """What an implementation came to, also when it came to it late; None for one that was ended."""
        match ended:
            case Returned(value=value):
                formatted = AbandonableCall(lambda: bound.returned(value), "safepoint format")
                return self._formatted(bound, await formatted.ended_within(self._format_seconds_max))
            case Raised(error=OutcomeNotSeen() as error) if bound.needs_permission:
                raise NotOver from error
            case Raised(error=error):
                answer = bound.raised(error)
                if waited is Waited.ENDED or answer.effect is not Effect.UNKNOWN:
                    return answer
            case None:
                pass
        if waited is Waited.INTERRUPTED and bound.needs_permission:
            raise OutcomeNotDeclared(context.operation_id, bound.tool_name)
        return ended_early(self._stopping, bound, waited)

    def _late(self, bound: BoundCall, ended: Ended[object]) -> PreparedResult:
        match ended:
            case Returned(value=value):
                formatted = joined(lambda: bound.returned(value), self._format_seconds_max)
                return self._formatted(bound, formatted)
            case Raised(error=error):
                return bound.raised(error)

    def _formatted(self, bound: BoundCall, ended: Ended[PreparedResult] | None) -> PreparedResult:
        if isinstance(ended, Returned):
            prepared: PreparedResult = ended.value
            return prepared
        unformatted = bound.unformatted(self._format_seconds_max)
        if ended is None:
            return unformatted
        return unkept_result(f"formatting it raised {type(ended.error).__name__}", effect=unformatted.effect)
