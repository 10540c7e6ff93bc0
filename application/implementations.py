"""Runs implementations: in a thread, on the event loop, or supervised; within their time and their number. SPEC section 8.

What comes back is what T2 records. Nothing here touches the ledger.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from ..domain.events.event import Json
from ..domain.events.tool import Effect
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..domain.tool_results import PreparedResult, refused
from ..ports.supervised import Overness, SupervisedExit
from ..ports.supervisor import SupervisedSlot, SupervisorLost, WorkNotStarted
from ..ports.tool_catalog import AsyncCall, BoundCall, Settled, SupervisedCall, SyncCall, ToolContext
from .stopping import CallCancel, Stopping

THREADS_MAX = 256
FORMAT_SECONDS_MAX = 10.0

ResultT = TypeVar("ResultT")


class NotOver(Exception):
    """The implementation did not end when it had to; nothing can be said of its effect or of its end."""


class Implementations:
    """Calls tools for one runtime.

    Args:
        stopping: says when live work should end, and how long it is waited for.
        on_late_end: told from a thread when an implementation that was given up has returned after all.
        threads_max: how many synchronous tools may run at once, 1 or more.
    """

    def __init__(
        self,
        stopping: Stopping,
        *,
        on_late_end: Callable[[ToolContext], None] = lambda context: None,
        threads_max: int = THREADS_MAX,
    ) -> None:
        self._stopping = stopping
        self._on_late_end = on_late_end
        self._threads = CapacityLimiter(threads_max)
        self._places: dict[str, CapacityLimiter] = {}

    @asynccontextmanager
    async def place(self, bound: BoundCall) -> AsyncIterator[None]:
        """Wait for a place among the calls of this tool that may run at once."""
        if bound.concurrency_limit is None:
            yield
            return
        limiter = self._places.setdefault(bound.tool_name, CapacityLimiter(bound.concurrency_limit))
        async with limiter:
            yield

    async def run(
        self,
        bound: BoundCall,
        arguments: dict[str, Json],
        context: ToolContext,
        cancel: CallCancel,
        slot: SupervisedSlot | None,
    ) -> Settled:
        """Call the implementation and prepare its answer.

        Raises:
            NotOver: it had to end and did not.
        """
        match bound.implementation:
            case SyncCall() as call:
                return Settled(await self._in_thread(bound, call, arguments, context, cancel))
            case AsyncCall() as call:
                return Settled(await self._on_loop(bound, call, arguments, context))
            case SupervisedCall() as call:
                assert slot is not None
                return await self._supervised(bound, call, arguments, context, slot)

    async def _in_thread(
        self, bound: BoundCall, call: SyncCall, arguments: dict[str, Json], context: ToolContext, cancel: CallCancel
    ) -> PreparedResult:
        thread = _Thread(lambda: call.run(arguments, context), lambda: self._on_late_end(context))
        await self._watch(bound, thread.wait(self._threads))
        if thread.outcome is None and bound.needs_permission:
            cancel.set()
            with anyio.move_on_after(self._stopping.bound_seconds, shield=True):
                await thread.finished()
        if thread.outcome is None:
            thread.give_up()
            if bound.needs_permission and thread.outcome is None:
                raise NotOver
            return self._ended_early(bound)
        ended_early = cancel.is_set() and not self._stopping.is_set()
        if isinstance(thread.outcome, BaseException):
            return bound.raised(thread.outcome)
        if ended_early:
            return bound.timed_out()
        return await self._formatted(bound, thread.outcome[0])

    async def _on_loop(
        self, bound: BoundCall, call: AsyncCall, arguments: dict[str, Json], context: ToolContext
    ) -> PreparedResult:
        outcome: list[object] = []

        async def work() -> None:
            outcome.append(await call.run(arguments, context))

        try:
            await self._watch(bound, work())
        except Exception as error:  # whatever a tool raises is an answer
            return bound.raised(error)
        return await self._formatted(bound, outcome[0]) if outcome else self._ended_early(bound)

    async def _watch(self, bound: BoundCall, work: Awaitable[None]) -> None:
        scope = self._stopping.after_bound(bound.timeout_seconds)
        try:
            with scope:
                await work
        finally:
            self._stopping.done(scope)

    def _ended_early(self, bound: BoundCall) -> PreparedResult:
        if not self._stopping.is_set():
            return bound.timed_out()
        said = render(SentenceId.TOOL_CANCELLED, {"by": self._stopping.by or "the host"})
        effect = Effect.UNKNOWN if bound.needs_permission else Effect.NONE
        return PreparedResult(said, is_error=True, effect=effect, code=ResponseCode.TOOL_TIMED_OUT)

    async def _formatted(self, bound: BoundCall, value: object) -> PreparedResult:
        prepared: list[PreparedResult] = []
        with anyio.move_on_after(FORMAT_SECONDS_MAX):
            await to_thread.run_sync(
                lambda: prepared.append(bound.returned(value)), abandon_on_cancel=True, limiter=self._threads
            )
        return prepared[0] if prepared else bound.unformatted(FORMAT_SECONDS_MAX)

    async def _supervised(
        self,
        bound: BoundCall,
        call: SupervisedCall,
        arguments: dict[str, Json],
        context: ToolContext,
        slot: SupervisedSlot,
    ) -> Settled:
        try:
            work = call.work(arguments, context)
            await _shielded(lambda: slot.start(work))
        except WorkNotStarted as error:
            return Settled(refused(error.detail))
        except SupervisorLost:
            raise NotOver from None
        if call.detach is not None:
            return call.detach(await _shielded(slot.living), context)
        exits: list[SupervisedExit] = []

        def wait() -> None:
            if (ended := slot.wait()) is not None:
                exits.append(ended)

        try:
            await self._watch(bound, to_thread.run_sync(wait, abandon_on_cancel=True, limiter=self._threads))
            if exits:
                return call.settle(exits[0], context)
            return Settled(await self._end(bound, call, context, slot))
        except SupervisorLost:
            raise NotOver from None

    async def _end(
        self, bound: BoundCall, call: SupervisedCall, context: ToolContext, slot: SupervisedSlot
    ) -> PreparedResult:
        """End supervised work that ran too long, await it, and answer with what it had said so far."""
        if await _shielded(slot.end) is not Overness.OVER:
            raise NotOver
        answer = self._ended_early(bound)
        ended = await _shielded(lambda: slot.wait(1.0))
        if ended is None:
            return answer
        partial = call.settle(ended, context).result
        return replace(answer, result={"error": answer.result, "until_then": partial.result})


class _Thread:
    """A synchronous implementation in a thread that may outlive the wait for it."""

    def __init__(self, work: Callable[[], object], on_late_end: Callable[[], None]) -> None:
        self.outcome: tuple[object] | BaseException | None = None
        self._work = work
        self._on_late_end = on_late_end
        self._given_up = False

    async def wait(self, limiter: CapacityLimiter) -> None:
        """Run and wait; a cancelled wait leaves the thread alone."""
        await to_thread.run_sync(self._call, abandon_on_cancel=True, limiter=limiter)

    async def finished(self) -> None:
        """Wait on after the wait was cancelled."""
        while self.outcome is None:
            await anyio.sleep(0.02)

    def give_up(self) -> None:
        """From now on its end is nobody's answer."""
        self._given_up = True

    def _call(self) -> None:
        try:
            self.outcome = (self._work(),)
        except BaseException as error:  # noqa: BLE001 (whatever a tool raises is an answer)
            self.outcome = error
        if self._given_up:
            self._on_late_end()


async def _shielded(work: Callable[[], ResultT]) -> ResultT:
    with anyio.CancelScope(shield=True):
        result = await to_thread.run_sync(work)
    return result
