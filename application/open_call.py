"""A call that somebody else's code carries out, in a block between T1 and T2. SPEC sections 8 and 17.

Entering the block is preflight and T1, leaving it is T2. Everything in between is the tool boundary of our own loop:
only the implementation is the block's, and no time-out of ours ends it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio
from anyio import CancelScope, get_cancelled_exc_class
from anyio.abc import TaskGroup

from ..domain.events.event import Json
from ..domain.events.tool import Effect, ToolCalled
from ..domain.identifiers import OperationId
from ..domain.own_copies import own, own_event
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..domain.tool_results import PreparedResult, prepare_result, refused
from ..ports.supervisor import SupervisedSlot
from ..ports.tool_catalog import Arguments, AsyncCall, BoundCall, Settled, ToolContext
from .abandonable_call import Ended, Raised, Returned
from .call_answers import Answer, CallRefused, OutcomeNotDeclared, RunStopped, answer_of
from .implementations import Implementations
from .preflight import Refused
from .run_recorder import RunRecorder
from .stopping import CallCancel, Stopping
from .tool_boundary import ToolBoundary
from .waiting import NotOver, Waited


class HandedOver(Implementations):
    """Waits for blocks: however long they take, and whatever became of whoever is in them."""

    async def run(
        self,
        bound: BoundCall,
        arguments: dict[str, Json],
        context: ToolContext,
        cancel: CallCancel,
        slot: SupervisedSlot | None,
        late: Callable[[PreparedResult], None],
    ) -> Settled:
        """Hand one call over, and take what is declared of it."""
        assert isinstance(bound.implementation, AsyncCall)  # an open call bound itself
        declared = await bound.implementation.run(arguments, context)
        if isinstance(declared, PreparedResult):
            return Settled(declared)
        assert isinstance(declared, Returned | Raised)
        return Settled(await self._answer(bound, context, declared, Waited.ENDED))


class OpenCall:
    """One recorded call, carried out in a block: `async with run.tool_call(call) as operation`.

    The block says once what came of it, by `result`, `error` or `refused`. Where it is torn away before it did, by an
    exception or a cancellation, nobody knows: the operation is left indeterminate. After a cancellation it counts as
    running until the process ends, since a thread of it may have been left behind, unless `over` was said.

    Args:
        boundary: whose implementations are `HandedOver`.
        bound: the call with its contract, or why it is refused.
        tasks: where the boundary waits for the block.
        torn: told when the operation is left without an outcome, or its outcome was not recorded.
        answered: awaited when the outcome is recorded.

    Attributes:
        call: as it was recorded; a copy.
    """

    def __init__(
        self,
        call: ToolCalled,
        bound: BoundCall | Refused,
        boundary: ToolBoundary,
        recorder: RunRecorder,
        stopping: Stopping,
        tasks: TaskGroup,
        torn: Callable[[], None],
        answered: Callable[[], Awaitable[None]],
    ) -> None:
        self.call = own_event(call)
        self._called = call
        self._boundary = boundary
        self._recorder = recorder
        self._stopping = stopping
        self._tasks = tasks
        self._torn = torn
        self._answered = answered
        self._bound = bound
        self._needs_permission = isinstance(bound, BoundCall) and bound.needs_permission
        if isinstance(bound, BoundCall):
            self._bound = replace(bound, implementation=AsyncCall(self._hand_over), timeout_seconds=None)
        self._arguments: dict[str, Json] | None = None
        self._context: ToolContext | None = None
        self._declared: PreparedResult | Ended[object] | None = None
        self._left: BaseException | None = None
        self._over = False
        self._error: Exception | None = None
        self._moved, self._leaving, self._done = anyio.Event(), anyio.Event(), anyio.Event()
        self._waiting = CancelScope()

    # ---- in the block -----------------------------------------------------------------------------------------------

    @property
    def context(self) -> ToolContext:
        """What the implementation may know: the operation, a stable idempotency key, whether it should stop.

        Raises:
            RuntimeError: the block was not entered.
        """
        if self._context is None:
            raise RuntimeError("the call was not entered")
        return self._context

    @property
    def arguments(self) -> dict[str, Any]:
        """The stored arguments, strict JSON: what was hashed is what is used. Each time a copy.

        Raises:
            RuntimeError: the block was not entered.
        """
        if self._arguments is None:
            raise RuntimeError("the call was not entered")
        return own(self._arguments)

    @property
    def operation_id(self) -> OperationId:
        """The operation that T1 recorded."""
        return self.context.operation_id

    @property
    def idempotency_key(self) -> str:
        """The same for every delivery of this operation."""
        return self.context.idempotency_key

    def result(self, value: object) -> None:
        """Say that it returned this: the effect is done.

        Args:
            value: strict JSON, as it is now; anything else is recorded as an error that says that the effect happened.

        Raises:
            TypeError: it is awaitable, so that nothing has come of it yet.
        """
        if inspect.isawaitable(value):
            raise TypeError(f"a {type(value).__name__} is no result yet: await it")
        with contextlib.suppress(RecursionError):  # a value inside itself is no JSON, which is told on leaving
            value = own(value)
        self._declare(Returned(value))

    def error(self, problem: object, *, effect: Effect | str | None = None) -> None:
        """Say that it failed.

        Args:
            problem: the exception, judged as one that our own loop catches; or what the model is shown, strict JSON.
            effect: what is known of the effect: `done`, `none` or `unknown`. By default what the contract says of the
                exception, and `unknown` of anything else.
        """
        if isinstance(problem, BaseException):
            if effect is None:
                self._declare(Raised(problem))
                return
            problem = f"{type(problem).__name__}: {problem}"
        known = Effect(effect or Effect.UNKNOWN) if self._needs_permission else Effect.NONE
        shown = prepare_result(problem, effect=known)
        self._declare(replace(shown, is_error=True, code=shown.code or ResponseCode.TOOL_RAISED))

    def refused(self, why: str) -> None:
        """Say that it was refused before anything happened: the effect is none."""
        self._declare(refused(why))

    def over(self) -> None:
        """Say that nothing of it runs any more, whatever becomes of the block: no thread, no task, no process."""
        self._over = True

    def _declare(self, outcome: PreparedResult | Ended[object]) -> None:
        if self._context is None or self._leaving.is_set():
            raise RuntimeError("an outcome is declared in the block of its call")
        if self._declared is not None:
            raise RuntimeError("the outcome of this call was declared before")
        self._declared = outcome

    @property
    def answer(self) -> Answer:
        """What is committed, once the block was left.

        Raises:
            RuntimeError: nothing is.
        """
        answered = answer_of(self._recorder, self._called)
        if answered is None:
            raise RuntimeError("the call has no committed answer")
        return answered

    # ---- around it --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Preflight and T1.

        Raises:
            CallRefused: it is answered already, and must not be carried out.
            RunStopped: it is not carried out.
            StoreError, WriteRefused: T1 was not recorded; nothing may happen.
        """
        self._tasks.start_soon(self._through, name=f"safepoint call {self._called.tool_name}")
        try:
            await self._moved.wait()
        except BaseException:
            await self._never_begun()
            raise
        if self._done.is_set():
            raise self._why_not()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """T2, before anybody is shown the result.

        Raises:
            OutcomeNotDeclared: the block ended and said nothing.
            StoreError, WriteRefused: T2 was not recorded: nobody may be shown the result.
        """
        self._left = error
        self._leaving.set()
        with CancelScope(shield=True):
            await self._done.wait()
        if self._error is None:
            if error is None:
                await self._answered()
            return
        self._torn()
        if error is None or self._declared is not None:
            raise self._error from error

    async def _through(self) -> None:
        """The whole way of the call, beside the block, so that nothing that happens to the block tears a commit."""
        try:
            with self._waiting:
                if isinstance(self._bound, Refused):
                    await self._boundary.refuse(self._called, self._bound)
                else:
                    await self._boundary.call(self._called, self._bound)
        except Exception as error:  # noqa: BLE001 (raised where the block is)
            self._error = error
        finally:
            self._done.set()
            self._moved.set()

    async def _hand_over(self, arguments: Arguments, context: ToolContext) -> object:
        self._arguments, self._context = dict(arguments), context
        self._moved.set()
        try:
            await self._leaving.wait()
        except get_cancelled_exc_class():
            raise NotOver from None  # the runtime is closed over the block, which may go on
        if self._declared is not None:
            return self._declared
        if self._left is None or isinstance(self._left, Exception) or self._over:
            raise OutcomeNotDeclared(context.operation_id, self._called.tool_name) from None
        raise NotOver

    async def _never_begun(self) -> None:
        """The block will not be entered: before T1 that is all, after it T2 says that nothing happened."""
        if self._context is None:
            self._waiting.cancel()
        elif self._declared is None:
            said = render(SentenceId.NOT_EXECUTED_CANCELLED, {"by": self._stopping.by})
            code = ResponseCode.NOT_EXECUTED_INTERRUPTED
            self._declared = PreparedResult(said, is_error=True, effect=Effect.NONE, code=code)
            self._leaving.set()
        with CancelScope(shield=True):
            await self._done.wait()

    def _why_not(self) -> Exception:
        if self._error is not None:
            self._torn()
            return self._error
        answered = answer_of(self._recorder, self._called)
        if answered is not None:
            return CallRefused(answered)
        return RunStopped(self._called.run_id, self._stopping.by if self._stopping.is_set() else None)
