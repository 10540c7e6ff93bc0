"""The synchronous twin, for scripts: the same runtime on an event loop of its own, in a thread. SPEC section 17."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

from ...application.agent_loop import RunOutcome
from ...application.call_answers import Answer
from ...application.cancel_run import CancelResult
from ...application.decide_permission import Decision
from ...application.inspect_sessions import SessionSummary
from ...application.intake import Step
from ...application.open_call import OpenCall
from ...application.reconciliation import Reconciliation
from ...application.repair_report import RepairReport
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
from ...ports.tool_catalog import ToolContext
from ...ports.views import OperationRow, PermissionRow
from ..composition import Composition
from ..settings import Settings
from .happenings import ContentNotBound, Watch
from .messages import Format
from .own_process import OpenedBeforeFork
from .parts import Keep, Model, Permission, Tools
from .portal import Portal
from .recorded import RecordedRun
from .runtime import Runtime
from .session import Session


class SyncRecordedRun:
    """As `RecordedRun`, for a synchronous loop; from any thread."""

    def __init__(self, run: RecordedRun, portal: Portal) -> None:
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
    def not_bound(self) -> ContentNotBound | None:
        """See `RecordedRun.not_bound`."""
        return self._run.not_bound

    @property
    def stopped_by(self) -> str | None:
        """See `RecordedRun.stopped_by`."""
        return self._run.stopped_by

    @property
    def tool_names(self) -> frozenset[str]:
        """See `RecordedRun.tool_names`."""
        return self._run.tool_names

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

    def needs_no_answer(self) -> None:
        """See `RecordedRun.needs_no_answer`."""
        self._portal.call(self._run.needs_no_answer)

    def steer(self, text: str) -> None:
        """See `RecordedRun.steer`."""
        self._portal.call(self._run.steer, text)

    @contextmanager
    def tool_call(self, call: ToolCalled | str) -> Iterator[OpenCall]:
        """See `RecordedRun.tool_call`: `with run.tool_call(call) as operation`."""
        opened = self._portal.call(self._run.tool_call, call)
        with self._portal.block(opened) as operation:
            yield operation

    def call(self, call: ToolCalled | str, function: Callable[..., Any] | None = None) -> Answer:
        """See `RecordedRun.call`."""
        return self._portal.wait(partial(self._run.call, call, function))

    def decline(self, call: ToolCalled | str, why: str) -> Answer:
        """See `RecordedRun.decline`."""
        return self._portal.call(self._run.decline, call, why)

    def answer(self, call: ToolCalled | str) -> Answer | None:
        """See `RecordedRun.answer`."""
        return self._portal.call(self._run.answer, call)


class SyncSession:
    """As `Session`, for synchronous code; from any thread."""

    def __init__(self, session: Session, portal: Portal) -> None:
        self._session = session
        self._portal = portal

    @property
    def session_id(self) -> SessionId:
        """Names it in the store."""
        return self._session.session_id

    @property
    def store(self) -> Path:
        """See `Session.store`."""
        return self._session.store

    def run(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> TurnResult:
        """See `Session.run`; `watch` is called on the runtime's own thread."""
        return self._portal.wait(
            partial(self._session.run, text, context=context, budgets=budgets, watch=watch, parent=parent)
        )

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
        return self._portal.wait(
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
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> Iterator[SyncRecordedRun]:
        """See `Session.record`: `with session.record("Pay the bill.") as run`."""
        begun = self._session.record(text, context=context, budgets=budgets, parent=parent)
        with self._portal.block(begun) as run:
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
        with self._portal.block(begun) as run:
            yield SyncRecordedRun(run, self._portal)

    def summary(self) -> SessionSummary | None:
        """See `Session.summary`."""
        return self._portal.wait(self._session.summary)

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
        return self._portal.wait(
            partial(plan, accept_drift=accept_drift, drop_permissions=drop_permissions, adopt=adopt, budgets=budgets)
        )

    def repair(self) -> Repaired:
        """See `Session.repair`."""
        return self._portal.wait(self._session.repair)

    def reconcile(self, operation_id: OperationId | str | None = None) -> Reconciliation | None:
        """See `Session.reconcile`."""
        return self._portal.wait(partial(self._session.reconcile, operation_id))

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
        return self._portal.wait(
            partial(self._session.settle, operation_id, statement, by=by, note=note, result=result)
        )

    def cancel(self, *, by: str) -> CancelResult:
        """See `Session.cancel`."""
        return self._portal.wait(partial(self._session.cancel, by=by))

    def unsettled(self) -> Sequence[OperationRow]:
        """See `Session.unsettled`."""
        return self._portal.wait(self._session.unsettled)

    def waiting(self) -> Sequence[PermissionRow]:
        """See `Session.waiting`."""
        return self._portal.wait(self._session.waiting)

    def decide(self, request_id: RequestId | str, *, approved: bool, by: str) -> Decision:
        """See `Session.decide`."""
        return self._portal.wait(partial(self._session.decide, request_id, approved=approved, by=by))


class SyncRuntime:
    """As `Runtime`, for synchronous code: `with safepoint.open_sync(...) as runtime`.

    Attributes:
        parts: the composition: a provider is overridden before the runtime is entered.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._portal: Portal | None = None
        self.parts: Composition = runtime.parts

    def __enter__(self) -> Self:
        """See `Runtime.__aenter__`."""
        portal = Portal()
        try:
            self._opened = portal.block(self._runtime)
            self._opened.__enter__()
        except BaseException:
            portal.close(cancel_remaining=True)
            raise
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See `Runtime.__aexit__`; in a fork of the process that opened it nothing is closed.

        Raises:
            OpenedBeforeFork: the block is left in such a fork, and not by an error.
        """
        portal = self._open_portal()
        if portal.is_forked:
            if error is None:
                raise OpenedBeforeFork
            return
        try:
            self._opened.__exit__(kind, error, traceback)
        finally:
            portal.close(cancel_remaining=error is not None)

    @property
    def beneath(self) -> tuple[Runtime, Portal]:
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
        return self._open_portal().wait(self._runtime.repair)

    def _open_portal(self) -> Portal:
        if self._portal is None:
            raise RuntimeError("the runtime is not open: use it as `with`")
        return self._portal


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
