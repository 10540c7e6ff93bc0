"""The tool boundary: T1, the implementation, T2. SPEC section 8, R6 to R8.

If T1 fails the implementation is called zero times; if T2 fails the model never sees the result; no transaction is open while a
tool runs. What cannot be proven over is left indeterminate and ends the run as `tool_not_over`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from anyio import to_thread

from ..domain.errors import SafepointError, StoreUnavailable
from ..domain.events.outside import BackgroundStarted, JobKind
from ..domain.events.tool import Effect, Life, RecoveryMode, ToolCalled, ToolDispatched, ToolResponded
from ..domain.identifiers import HandleId, OperationId, derive_id
from ..domain.reasons import ResponseCode
from ..domain.sentences import SentenceId, render
from ..domain.tool_results import PreparedResult, refused
from ..ports.failpoints import Failpoint, Failpoints
from ..ports.ids import Ids
from ..ports.supervisor import SupervisedSlot, Supervisor, SupervisorUnavailable
from ..ports.tool_catalog import BoundCall, LeftRunning, Settled, ToolContext
from .implementations import Implementations, NotOver
from .over import LiveOperations
from .preflight import Admitted, Preflight, Refused
from .run_recorder import RunRecorder
from .stopping import CallCancel, Stopping


class ToolNotOver(SafepointError):
    """An implementation did not end when it had to; its operation stays indeterminate and the run cannot go on."""

    def __init__(self, operation_id: OperationId, tool_name: str) -> None:
        super().__init__(f"operation {operation_id} ({tool_name}) did not end when it had to and may still run")
        self.operation_id = operation_id
        self.tool_name = tool_name


class ToolBoundary:
    """Carries one call of one run from the recorded step to its committed answer.

    Args:
        workspace: the run's folder.
        report: takes progress lines of tools: tool name and text; not durable.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        preflight: Preflight,
        implementations: Implementations,
        supervisor: Supervisor,
        live: LiveOperations,
        stopping: Stopping,
        ids: Ids,
        failpoints: Failpoints,
        workspace: Path,
        report: Callable[[str, str], None],
    ) -> None:
        self._recorder = recorder
        self._preflight = preflight
        self._implementations = implementations
        self._supervisor = supervisor
        self._live = live
        self._stopping = stopping
        self._ids = ids
        self._failpoints = failpoints
        self._workspace = workspace
        self._report = report

    def bind(self, call: ToolCalled) -> BoundCall | Refused:
        """Check what needs no look at the world."""
        return self._preflight.bind(call)

    async def refuse(self, call: ToolCalled, refusal: Refused) -> None:
        """Commit the answer to a call that is not dispatched."""
        prepared = PreparedResult(refusal.said, is_error=True, effect=Effect.NONE, code=refusal.code)
        await self._recorder.refuse(self._response(call, None, prepared))

    async def call(self, call: ToolCalled, bound: BoundCall) -> None:
        """Admit and run one call; returns when its answer is committed.

        Raises:
            ToolNotOver: the implementation would not end.
            StoreUnavailable, StoreFull, StoreDamaged, WriteRefused: T1 or T2 failed.
        """
        admitted = await self._preflight.admit(call, bound)
        if isinstance(admitted, Refused):
            await self.refuse(call, admitted)
            return
        if self._stopping.is_set():
            return  # closed as not executed, by the terminal commit
        async with self._implementations.place(bound):
            await self._dispatch(call, admitted)

    async def _dispatch(self, call: ToolCalled, admitted: Admitted) -> None:
        operation_id = self._ids.fresh(OperationId)
        bound = admitted.bound
        slot: SupervisedSlot | None = None
        try:
            evidence = await to_thread.run_sync(bound.evidence, self._workspace)
            if bound.life is Life.SUPERVISED:
                slot = await to_thread.run_sync(self._supervisor.prepare, operation_id)
        except SupervisorUnavailable as error:
            await self.refuse(call, Refused(ResponseCode.REFUSED_WITHOUT_EFFECT, refused_text(str(error))))
            return
        except Exception as error:  # evidence is the tool's own code: whatever it raises, nothing has happened yet
            await self.refuse(call, Refused(ResponseCode.REFUSED_WITHOUT_EFFECT, refused_text(str(error))))
            return
        dispatch = ToolDispatched(
            **self._recorder.spine(),
            operation_id=operation_id,
            call_id=call.call_id,
            tool_name=call.tool_name,
            args_hash=admitted.args_hash,
            contract=bound.contract,
            idempotency_key=admitted.recorded_key or _key(bound, operation_id),
            evidence=evidence,
            incarnation_id=self._recorder.owned.incarnation_id,
            life=bound.life,
            grant_id=admitted.grant_id,
            repeats=admitted.repeats,
        )
        self._live.began(operation_id)
        try:
            await self._prepared(call, dispatch, slot)
            await self._run(call, bound, dispatch, slot)
        except NotOver:
            # It stays among the live operations: its thread is still there, and settling is refused until it is gone.
            raise ToolNotOver(operation_id, call.tool_name) from None
        except BaseException:
            self._live.ended(operation_id)
            raise
        self._live.ended(operation_id)

    async def _prepared(self, call: ToolCalled, dispatch: ToolDispatched, slot: SupervisedSlot | None) -> None:
        """Commit T1. When it is not known whether it was written, the call is closed unexecuted if it turns out that it was."""
        try:
            await self._recorder.prepare(dispatch)
        except BaseException as error:
            if slot is not None:
                await to_thread.run_sync(slot.release)
            if isinstance(error, StoreUnavailable):
                await self._close_unexecuted(call, dispatch)
            raise

    async def _close_unexecuted(self, call: ToolCalled, dispatch: ToolDispatched) -> None:
        """The implementation will not start: if T1 is durable after all, say so with a T2 of effect `none`."""
        said = render(SentenceId.NOT_EXECUTED_INTERRUPTED)
        prepared = PreparedResult(said, is_error=True, effect=Effect.NONE, code=ResponseCode.NOT_EXECUTED_INTERRUPTED)
        try:
            await self._recorder.prepare(dispatch)
            await self._recorder.outcome(self._response(call, dispatch.operation_id, prepared))
        except SafepointError:
            return  # still unknown: recovery finds a dispatch without a response, or none

    async def _run(
        self, call: ToolCalled, bound: BoundCall, dispatch: ToolDispatched, slot: SupervisedSlot | None
    ) -> None:
        cancel = CallCancel(self._stopping)
        context = self._context(call, dispatch, cancel)
        if self._stopping.is_set():
            settled = Settled(_not_started(self._stopping.by))
            if slot is not None:
                await to_thread.run_sync(slot.release)
        else:
            arguments = self._recorder.stored_arguments(call.call_id)
            self._failpoints.hit(Failpoint.IMPLEMENTATION_RUNNING)
            settled = await self._implementations.run(bound, arguments, context, cancel, slot)
        response = self._response(call, dispatch.operation_id, settled.result)
        left = None if settled.left_running is None else self._background(dispatch, settled.left_running)
        await self._recorder.outcome(response, left)
        if slot is not None and left is None:
            await to_thread.run_sync(self._supervisor.forget, dispatch.operation_id)

    def _context(self, call: ToolCalled, dispatch: ToolDispatched, cancel: CallCancel) -> ToolContext:
        return ToolContext(
            identity=self._recorder.identity,
            operation_id=dispatch.operation_id,
            idempotency_key=dispatch.idempotency_key or derive_id(dispatch.operation_id, "key"),
            workspace=self._workspace,
            cancel=cancel,
            report=lambda line: self._report(call.tool_name, line),
            failpoints=self._failpoints,
        )

    def _response(self, call: ToolCalled, operation_id: OperationId | None, prepared: PreparedResult) -> ToolResponded:
        return ToolResponded(
            **self._recorder.spine(),
            call_id=call.call_id,
            tool_name=call.tool_name,
            operation_id=operation_id,
            result=prepared.result,
            is_error=prepared.is_error,
            effect=prepared.effect,
            code=prepared.code,
            original_length=prepared.original_length,
            original_digest=prepared.original_digest,
        )

    def _background(self, dispatch: ToolDispatched, left: LeftRunning) -> BackgroundStarted:
        return BackgroundStarted(
            **self._recorder.spine(),
            handle_id=HandleId(derive_id(dispatch.operation_id, "handle")),
            kind=JobKind.SHELL,
            operation_id=dispatch.operation_id,
            handle=left.handle,
            detached=left.detached,
        )


def refused_text(detail: str) -> str:
    """The sentence for a call that was refused before it did anything."""
    return str(refused(detail).result)


def _key(bound: BoundCall, operation_id: OperationId) -> str | None:
    return derive_id(operation_id, "key") if bound.contract.mode is RecoveryMode.IDEMPOTENT else None


def _not_started(by: str | None) -> PreparedResult:
    said = render(SentenceId.NOT_EXECUTED_CANCELLED, {"by": by or "the host"})
    return PreparedResult(said, is_error=True, effect=Effect.NONE, code=ResponseCode.NOT_EXECUTED_INTERRUPTED)
