"""The synchronous twin, for scripts: the same runtime on an event loop of its own, in a thread. SPEC section 17."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ...application.agent_loop import RunOutcome
from ...application.cancel_run import CancelResult
from ...application.decide_permission import Decision
from ...application.inspect_sessions import SessionSummary
from ...application.intake import Step
from ...application.open_call import Answer, OpenCall
from ...application.reconciliation import Reconciliation
from ...application.repair_everything import RepairReport
from ...application.repair_session import Repaired
from ...application.resume_run import Continued, Parked
from ...application.run_turn import TurnResult
from ...application.settlement import Settlement
from ...application.turn_context import ALL, ContextChoice
from ...domain.events.event import Json
from ...domain.events.run import Budgets
from ...domain.events.tool import Statement, ToolCalled
from ...domain.identifiers import OperationId, RequestId, RunId, SessionId
from ...domain.planning.facts import Drift
from ...domain.planning.outcome import Plan
from ...domain.replay.items import Item
from ...ports.views import OperationRow, PermissionRow
from ..composition import Composition, Settings
from .happenings import Watch
from .messages import Format
from .parts import Keep, Model, Permission, Tools
from .recorded import RecordedRun
from .runtime import Runtime
from .session import Session

ResultT = TypeVar("ResultT")


class SyncRecordedRun:
    """As `RecordedRun`, for a synchronous loop; from any thread."""

    def __init__(self, run: RecordedRun, portal: BlockingPortal) -> None:
        self._run = run
        self._portal = portal

    @property
    def session_id(self) -> SessionId:
        """See `RecordedRun.session_id`."""
        return self._run.session_id

    @property
    def run_id(self) -> RunId:
        """See `RecordedRun.run_id`."""
        return self._run.run_id

    @property
    def outcome(self) -> RunOutcome | None:
        """See `RecordedRun.outcome`."""
        return self._run.outcome

    @property
    def stopped_by(self) -> str | None:
        """See `RecordedRun.stopped_by`."""
        return self._run.stopped_by

    @overload
    def history(self) -> tuple[Item, ...]: ...

    @overload
    def history(self, format: Format) -> list[Any]: ...

    def history(self, format: Format | None = None) -> tuple[Item, ...] | list[Any]:  # noqa: A002 (it is the word for it)
        """See `RecordedRun.history`."""
        if format is None:
            return self._portal.call(self._run.history)
        return self._portal.call(self._run.history, format)

    def check(self) -> None:
        """See `RecordedRun.check`."""
        self._portal.call(self._run.check)

    def model_step(self, answer: object, format: Format | None = None) -> Step:  # noqa: A002 (it is the word for it)
        """See `RecordedRun.model_step`."""
        return self._portal.call(self._run.model_step, answer, format)

    def steer(self, text: str) -> None:
        """See `RecordedRun.steer`."""
        self._portal.call(self._run.steer, text)

    @contextmanager
    def tool_call(self, call: ToolCalled | str) -> Iterator[OpenCall]:
        """See `RecordedRun.tool_call`: `with run.tool_call(call) as operation`."""
        opened = self._portal.call(self._run.tool_call, call)
        with self._portal.wrap_async_context_manager(opened) as operation:
            yield operation

    def call(self, call: ToolCalled | str, function: Callable[..., Any] | None = None) -> Answer:
        """See `RecordedRun.call`."""
        return _wait(self._portal, partial(self._run.call, call, function))

    def decline(self, call: ToolCalled | str, why: str) -> Answer:
        """See `RecordedRun.decline`."""
        return self._portal.call(self._run.decline, call, why)

    def answer(self, call: ToolCalled | str) -> Answer | None:
        """See `RecordedRun.answer`."""
        return self._portal.call(self._run.answer, call)


class SyncSession:
    """As `Session`, for synchronous code; from any thread."""

    def __init__(self, session: Session, portal: BlockingPortal) -> None:
        self._session = session
        self._portal = portal

    @property
    def session_id(self) -> SessionId:
        """Names it in the store."""
        return self._session.session_id

    def run(
        self, text: str, *, context: ContextChoice = ALL, budgets: Budgets | None = None, watch: Watch | None = None
    ) -> TurnResult:
        """See `Session.run`; `watch` is called on the runtime's own thread."""
        return self._wait(partial(self._session.run, text, context=context, budgets=budgets, watch=watch))

    def resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
    ) -> Parked | Continued:
        """See `Session.resume`; `watch` is called on the runtime's own thread."""
        return self._wait(
            partial(
                self._session.resume,
                accept_drift=accept_drift,
                drop_permissions=drop_permissions,
                adopt=adopt,
                reconcile=reconcile,
                budgets=budgets,
                watch=watch,
            )
        )

    @contextmanager
    def record(
        self, text: str, *, context: ContextChoice = ALL, budgets: Budgets | None = None
    ) -> Iterator[SyncRecordedRun]:
        """See `Session.record`: `with session.record("Pay the bill.") as run`."""
        begun = self._session.record(text, context=context, budgets=budgets)
        with self._portal.wrap_async_context_manager(begun) as run:
            yield SyncRecordedRun(run, self._portal)

    @contextmanager
    def record_resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
    ) -> Iterator[SyncRecordedRun]:
        """See `Session.record_resume`."""
        begun = self._session.record_resume(
            accept_drift=accept_drift,
            drop_permissions=drop_permissions,
            adopt=adopt,
            reconcile=reconcile,
            budgets=budgets,
        )
        with self._portal.wrap_async_context_manager(begun) as run:
            yield SyncRecordedRun(run, self._portal)

    def summary(self) -> SessionSummary | None:
        """See `Session.summary`."""
        return self._wait(self._session.summary)

    def plan(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        budgets: Budgets | None = None,
    ) -> Plan:
        """See `Session.plan`."""
        plan = self._session.plan
        return self._wait(
            partial(plan, accept_drift=accept_drift, drop_permissions=drop_permissions, adopt=adopt, budgets=budgets)
        )

    def repair(self) -> Repaired:
        """See `Session.repair`."""
        return self._wait(self._session.repair)

    def reconcile(self, operation_id: OperationId | str | None = None) -> Reconciliation | None:
        """See `Session.reconcile`."""
        return self._wait(partial(self._session.reconcile, operation_id))

    def settle(
        self,
        operation_id: OperationId | str,
        statement: Statement | str,
        *,
        by: str,
        note: str,
        result: Json = None,
    ) -> Settlement:
        """See `Session.settle`."""
        return self._wait(partial(self._session.settle, operation_id, statement, by=by, note=note, result=result))

    def cancel(self, *, by: str) -> CancelResult:
        """See `Session.cancel`."""
        return self._wait(partial(self._session.cancel, by=by))

    def unsettled(self) -> Sequence[OperationRow]:
        """See `Session.unsettled`."""
        return self._wait(self._session.unsettled)

    def waiting(self) -> Sequence[PermissionRow]:
        """See `Session.waiting`."""
        return self._wait(self._session.waiting)

    def decide(self, request_id: RequestId | str, *, approved: bool, by: str) -> Decision:
        """See `Session.decide`."""
        return self._wait(partial(self._session.decide, request_id, approved=approved, by=by))

    def _wait(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        return _wait(self._portal, work)


class SyncRuntime:
    """As `Runtime`, for synchronous code: `with safepoint.open_sync(...) as runtime`.

    Attributes:
        parts: the composition: a provider is overridden before the runtime is entered.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._closing = ExitStack()
        self._portal: BlockingPortal | None = None
        self.parts: Composition = runtime.parts

    def __enter__(self) -> Self:
        """See `Runtime.__aenter__`."""
        with ExitStack() as opening:
            self._portal = opening.enter_context(start_blocking_portal())
            opening.enter_context(self._portal.wrap_async_context_manager(self._runtime))
            self._closing = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See `Runtime.__aexit__`."""
        self._closing.__exit__(kind, error, traceback)

    @property
    def beneath(self) -> tuple[Runtime, BlockingPortal]:
        """The runtime and the way to its event loop, for adapters of synchronous frameworks.

        Raises:
            RuntimeError: it is not open.
        """
        return self._runtime, self._open_portal()

    def session(self, session_id: str | None = None) -> SyncSession:
        """See `Runtime.session`."""
        portal = self._open_portal()
        return SyncSession(portal.call(self._runtime.session, session_id), portal)

    def repair(self) -> RepairReport:
        """See `Runtime.repair`."""
        return _wait(self._open_portal(), self._runtime.repair)

    def _open_portal(self) -> BlockingPortal:
        if self._portal is None:
            raise RuntimeError("the runtime is not open: use it as `with`")
        return self._portal


def _wait(portal: BlockingPortal, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Wait for it; whoever is interrupted meanwhile interrupts it, too, and waits until it has ended."""
    ended = threading.Event()

    async def watched() -> ResultT:
        try:
            return await work()
        finally:
            ended.set()

    future = portal.start_task_soon(watched)
    try:
        return future.result()
    except BaseException:
        if future.cancel():
            ended.wait()
        raise


def open_sync(
    store: str | os.PathLike[str] | Settings,
    *,
    workspace: str | os.PathLike[str] | None = None,
    model: Model = None,
    tools: Tools = (),
    system_prompt: str = "",
    permission: Permission = "allow",
    checkpoints: Keep = "auto",
) -> SyncRuntime:
    """As `open`, for a script without an event loop: `with safepoint.open_sync("agent.db") as runtime`.

    Args:
        store, workspace, model, tools, system_prompt, permission, checkpoints: as `open` takes them.

    Raises:
        ToolDefinitionError: a tool cannot be one as it is declared.
        ValueError: there is no such permission.
    """
    return SyncRuntime(
        Runtime(
            store,
            workspace=workspace,
            model=model,
            tools=tools,
            system_prompt=system_prompt,
            permission=permission,
            checkpoints=checkpoints,
        )
    )
