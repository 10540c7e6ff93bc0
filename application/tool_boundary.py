"""The tool boundary: preflight, T1, implementation, T2. SPEC section 8, R6 to R8.

If T1 fails the implementation is called zero times; if T2 fails the model never sees the result; no transaction is open
while a tool runs. What cannot be proven over is left indeterminate and ends the run as `tool_not_over`.
"""

from __future__ import annotations

from functools import partial

from ..domain.errors import SafepointError, StoreError, WriteRefused
from ..domain.events.tool import Effect, Life, ToolCalled
from ..domain.identifiers import OperationId
from ..domain.reasons import WriteRefusal
from ..domain.sentences import SentenceId
from ..domain.tool_arguments import NotStrictJson
from ..domain.tool_results import PreparedResult
from ..ports.tool_catalog import BoundCall
from .after_dispatch import AfterDispatch
from .before_dispatch import BeforeDispatch, Ready, let_go, refusal
from .live_operations import LiveOperations
from .places import Places
from .preflight import Admitted, Preflight, Refused
from .run_recorder import RunRecorder
from .stopping import Stopping
from .tool_facts import response_of
from .waiting import NotOver, tell_when_over


class ToolNotOver(SafepointError):
    """An operation did not end when it had to; it stays indeterminate, and its run cannot go on.

    Attributes:
        operation_id: which one.
        tool_name: of the tool that was called.
    """

    def __init__(self, operation_id: OperationId, tool_name: str) -> None:
        super().__init__(f"operation {operation_id} ({tool_name}) did not end when it had to and may still run")
        self.operation_id = operation_id
        self.tool_name = tool_name


class ToolBoundary:
    """Carries the calls of one run from the recorded step to their committed answers.

    Args:
        places: how many implementations may run at once.
        live: told of every operation that this process cannot call over.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        preflight: Preflight,
        before: BeforeDispatch,
        after: AfterDispatch,
        places: Places,
        live: LiveOperations,
        stopping: Stopping,
    ) -> None:
        self._recorder = recorder
        self._preflight = preflight
        self._before = before
        self._after = after
        self._places = places
        self._live = live
        self._stopping = stopping
        self._closed = False

    def bind(self, call: ToolCalled, unreadable: NotStrictJson | None) -> BoundCall | Refused:
        """Check what needs no look at the world; `unreadable` says why the arguments are no strict JSON."""
        return self._preflight.bind(call, unreadable)

    async def refuse(self, call: ToolCalled, refused: Refused) -> None:
        """Commit the answer to a call that is not dispatched."""
        prepared = PreparedResult(refused.said, is_error=True, effect=Effect.NONE, code=refused.code)
        await self._recorder.refuse(response_of(self._recorder.spine(), call, None, prepared))

    async def call(self, call: ToolCalled, bound: BoundCall) -> None:
        """Admit and run one call; returns when its answer is committed, or is left to the terminal commit.

        After the first error nothing more is dispatched.

        Raises:
            ToolNotOver: the implementation would not end.
            StoreError, WriteRefused: something could not be recorded.
        """
        if self._ending():
            return
        try:
            admitted = await self._preflight.admit(call, bound)
            if self._ending():
                return
            if isinstance(admitted, Refused):
                await self.refuse(call, admitted)
                return
            async with self._places.place(bound):
                if not self._ending():
                    await self._dispatch(call, admitted)
        except SafepointError:
            self._closed = True
            raise

    def _ending(self) -> bool:
        """What is not dispatched now is closed as not executed by the terminal commit."""
        return self._closed or self._stopping.is_set()

    async def _dispatch(self, call: ToolCalled, admitted: Admitted) -> None:
        ready = await self._before.ready(call, admitted)
        if isinstance(ready, Refused):
            await self.refuse(call, ready)
        if not isinstance(ready, Ready):
            return
        operation_id, over = ready.dispatch.operation_id, True
        self._live.began(operation_id, self._recorder.identity.session_id)
        try:
            if await self._granted(call, ready):
                await self._after.carry_out(call, ready)
        except NotOver as error:
            over = ready.dispatch.life is Life.SUPERVISED  # its lock tells; a thread is in this process alone
            if not over:
                tell_when_over(error, partial(self._live.ended, operation_id))
            raise ToolNotOver(operation_id, call.tool_name) from None
        finally:
            if over:
                self._live.ended(operation_id)

    async def _granted(self, call: ToolCalled, ready: Ready) -> bool:
        """Commit T1; False when the call is answered, or closed by the end of the run, without one."""
        granted = False
        try:
            await self._recorder.prepare(ready.dispatch)
            granted = True
        except WriteRefused as error:
            if error.code is WriteRefusal.TRANSITION_SHAPE_CONFLICT:
                await self.refuse(call, refusal(error.detail))
            elif error.code is not WriteRefusal.RUN_SEALED or not (await self._recorder.run()).open:
                raise  # a run that is open and sealed is being stopped
        except StoreError as error:
            if error.code is WriteRefusal.STORE_UNAVAILABLE:
                await self._close_unexecuted(call, ready)
            raise
        finally:
            if not granted:
                await let_go(ready.slot)
        return granted

    async def _close_unexecuted(self, call: ToolCalled, ready: Ready) -> None:
        """It is not known whether T1 is durable: if an exact retry finds that it is, say that nothing was executed."""
        try:
            await self._recorder.prepare(ready.dispatch)
            await self._after.not_executed(call, ready.dispatch, SentenceId.NOT_EXECUTED_INTERRUPTED)
        except SafepointError:
            return  # still unknown: recovery finds a dispatch without a response, or none
