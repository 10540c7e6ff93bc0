"""Runs one call in processes of its own, ends it when its time is up, and reads how it ended. SPEC sections 8, 15."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..domain.events.event import Json
from ..domain.tool_results import PreparedResult, as_stored, prepare_result, refused
from ..ports.supervised import Overness, SupervisedExit, Work
from ..ports.supervisor import SupervisedSlot, WorkNotStarted
from ..ports.tool_catalog import BoundCall, Settled, SupervisedCall, ToolContext
from .abandonable_call import AbandonableCall, Returned
from .in_thread import in_thread
from .stopping import Stopping
from .waiting import NotOver, Waited, ended_early, wait

LAST_WORDS_SECONDS = 1.0
"""How long the end of work that was ended may take to arrive."""


class SupervisedCalls:
    """Carries out supervised calls of one run.

    Args:
        stopping: says when live work should end, and how long it is waited for.
    """

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping

    async def run(
        self,
        bound: BoundCall,
        call: SupervisedCall,
        arguments: dict[str, Json],
        context: ToolContext,
        slot: SupervisedSlot,
    ) -> Settled:
        """Start the work in a slot whose lock is held, and wait for it or leave it running.

        Raises:
            NotOver: it did not end when it had to, or what became of it could not be seen; its lock tells.
        """
        try:
            work = call.work(arguments, context)
        except Exception as error:  # noqa: BLE001 (the tool's own code: nothing was started)
            return Settled(refused(f"it could not be made ready ({type(error).__name__}: {error})"))
        if not_started := await self._start(slot, work):
            return Settled(not_started)
        if call.detach is not None:
            return await self._detached(call.detach, context, slot)
        waiting = AbandonableCall(slot.wait, f"safepoint {bound.tool_name}")
        waited = await wait(self._stopping, bound, waiting.finished) if waiting.start() else Waited.STOPPED
        waiting.give_up()
        if waited is Waited.INTERRUPTED and waiting.ended is None:
            raise NotOver
        if waiting.ended is None:
            return await self._ended(bound, call, context, slot, waited)
        if isinstance(waiting.ended, Returned) and waiting.ended.value is not None:
            return _settled(bound, call, waiting.ended.value, context)
        raise NotOver  # the supervisor died, or it cannot say

    async def _start(self, slot: SupervisedSlot, work: Work) -> PreparedResult | None:
        try:
            await in_thread(lambda: slot.start(work))
        except WorkNotStarted as error:
            return refused(error.detail)
        except Exception as error:  # whatever it raises else, it may have been started
            raise NotOver from error
        return None

    async def _detached(self, detach: Callable[..., Settled], context: ToolContext, slot: SupervisedSlot) -> Settled:
        try:
            settled = detach(await in_thread(slot.living), context)
            return settled._replace(result=as_stored(settled.result))
        except Exception as error:  # it runs, and its handle is not known
            raise NotOver from error

    async def _ended(
        self, bound: BoundCall, call: SupervisedCall, context: ToolContext, slot: SupervisedSlot, waited: Waited
    ) -> Settled:
        """End work that ran too long, await it, and answer with what it had said so far."""
        try:
            if await in_thread(slot.end) is not Overness.OVER:
                raise NotOver
            end = await in_thread(lambda: slot.wait(LAST_WORDS_SECONDS))
        except NotOver:
            raise
        except Exception as error:  # the supervisor died: only the lock can tell
            raise NotOver from error
        answer = ended_early(self._stopping, bound, waited)
        if end is None:
            return Settled(answer)
        settled = _settled(bound, call, replace(end, left_running=False, living=()), context)
        if not end.ended_on_request:
            return settled  # it had ended by itself just before
        return Settled(_with_last_words(answer, settled.result))


def _settled(bound: BoundCall, call: SupervisedCall, end: SupervisedExit, context: ToolContext) -> Settled:
    try:
        settled = call.settle(end, context)
        return settled._replace(result=as_stored(settled.result))
    except Exception as error:  # reading the end is the tool's own code
        if end.left_running:
            raise NotOver from error
        return Settled(bound.raised(error))


def _with_last_words(answer: PreparedResult, said: PreparedResult) -> PreparedResult:
    """The answer with what the work had put out until it was ended, within the bound of a result."""
    both = prepare_result({"error": answer.result, "until_then": said.result})
    return replace(
        answer, result=both.result, original_length=both.original_length, original_digest=both.original_digest
    )
