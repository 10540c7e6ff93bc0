"""The life of a host: opening, ready, draining, closed. SPEC sections 15 and 17, ADR 0041.

Repair is strictly before ready. Closing stops admission first, then recovery in the background; it waits for what runs,
and gives back the store and last the lock. What fails in the background is kept until then, and raised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup

from ..domain.identifiers import SessionId
from ..ports.lifecycle_sink import LifecycleSink
from ..ports.views import FamilyViews
from .agent import Agent
from .auto_resume import Automatic, AutoResume, is_tried
from .host_phases import CANCEL_SECONDS, HostClosedMeanwhile, HostNotReady, Phase
from .in_thread import in_thread, waited_out
from .live_runs import LiveRun
from .ownership import SessionOwnership
from .plan_resume import PlanRequest
from .repair_before_ready import repair_before_ready
from .repair_everything import RepairEverything, nothing_awaited
from .repair_report import RepairReport, RepairStep
from .repair_session import Repaired
from .resume_run import Continued, Parked, ResumeRun
from .run_agent import Screen
from .run_turn import RunTurn, TurnResult
from .turn_context import ALL, ContextChoice

DRAIN_SECONDS = 30.0

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class HostParts:
    """What a host works with, once its store is open."""

    repair: RepairEverything
    run_turn: RunTurn
    resume_run: ResumeRun
    ownership: SessionOwnership
    views: FamilyViews
    sink: LifecycleSink


class Host:
    """Owns what one process works with, from opening to the lock; an async context manager, used once.

    All methods belong to the event loop on which it was opened.

    Args:
        open_parts: opens the store and gives the parts; may block.
        close_parts: gives everything back, the lock last, however far opening came; may block.
        automatic: None where nothing is resumed without a person.
        progress: told after each batch of repair; what it raises stops the opening.
        drain_seconds: how long live runs are waited for at the end, 0 or more; then they are cancelled.

    Attributes:
        phase: how far it has come.
        report: what repair did before the host was ready.
        errors: what failed in the background, in order; raised when the host is closed.
    """

    def __init__(
        self,
        open_parts: Callable[[], HostParts],
        close_parts: Callable[[], None],
        *,
        automatic: Automatic | None = None,
        progress: Callable[[RepairStep], None] = lambda step: None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self.phase = Phase.OPENING
        self.report = RepairReport()
        self.errors: list[Exception] = []
        self._open_parts = open_parts
        self._close_parts = close_parts
        self._automatic = automatic
        self._progress = progress
        self._drain_seconds = drain_seconds
        self._parts: HostParts
        self._live: set[CancelScope] = set()
        self._recovery: CancelScope | None = None
        self._tasks: TaskGroup | None = None
        self._opening: CancelScope | None = None
        self._changed: anyio.Event
        self._given_back: anyio.Event

    # ---- opening ---------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the store, repair everything that the dead left, and be ready.

        Raises:
            StoreError, OwnershipUnavailable: it could not be opened or repaired; everything was given back.
            RepairIncomplete: some sessions could not be repaired, twice.
            HostNotReady: it was closed meanwhile.
            RuntimeError: it was entered before.
        """
        if self._opening is not None:
            raise RuntimeError("a host is opened once")
        self._opening, self._changed, self._given_back = CancelScope(), anyio.Event(), anyio.Event()
        repaired: list[Repaired] = []
        try:
            with self._opening:
                self._parts = await in_thread(self._open_parts)
                awaited = nothing_awaited if self._automatic is None else is_tried
                repaired = await repair_before_ready(self._parts.repair, self.report, self._progress, awaited)
            if self._opening.cancelled_caught:
                raise HostNotReady(Phase.CLOSED)
        except BaseException:
            await self._give_back()
            raise
        self.phase = Phase.READY
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        if self._automatic is not None:
            self._recovery = CancelScope()
            self._tasks.start_soon(self._recover, self._automatic, self._recovery, repaired)
        return self

    async def _recover(self, automatic: Automatic, recovery: CancelScope, repaired: list[Repaired]) -> None:
        parts = self._parts
        try:
            with recovery:
                auto = AutoResume(automatic, self._admit, parts.resume_run, parts.ownership, parts.views, parts.sink)
                await auto(repaired, self._failed)
        except Exception as error:  # noqa: BLE001 (it must not end the body of the host; closing raises it)
            self._failed(error)
        finally:
            self._recovery = None
            self._tell_change()

    def _failed(self, error: Exception) -> None:
        """Keep what failed in the background; a run that closing cut short is no failure, and can be resumed."""
        if not isinstance(error, HostClosedMeanwhile):
            self.errors.append(error)

    # ---- ready -----------------------------------------------------------------------------------------------------

    async def run_turn(
        self,
        session_id: SessionId,
        text: str,
        agent: Agent,
        screen: Screen | None = None,
        started: Callable[[LiveRun], None] = lambda run: None,
        *,
        context: ContextChoice = ALL,
    ) -> TurnResult:
        """As `RunTurn`, while the host is ready.

        Raises:
            HostNotReady: it is not.
            HostClosedMeanwhile: it was closed and waited no longer.
        """
        return await self._admit(
            lambda: self._parts.run_turn(session_id, text, agent, screen or Screen(), started, context=context)
        )

    async def resume(
        self,
        session_id: SessionId,
        agent: Agent,
        screen: Screen | None = None,
        started: Callable[[LiveRun], None] = lambda run: None,
        request: PlanRequest | None = None,
    ) -> Parked | Continued:
        """As `ResumeRun`, while the host is ready; raises as `run_turn` does."""
        return await self._admit(
            lambda: self._parts.resume_run(session_id, agent, screen or Screen(), started, request)
        )

    async def _admit(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        if self.phase is not Phase.READY:
            raise HostNotReady(self.phase)
        scope = CancelScope()
        with self._living(scope), scope:
            return await work()
        raise HostClosedMeanwhile

    @contextmanager
    def _living(self, scope: CancelScope) -> Iterator[None]:
        self._live.add(scope)
        try:
            yield
        finally:
            self._live.discard(scope)
            self._tell_change()

    async def recovered(self) -> None:
        """Wait until every run that is continued by itself was tried, and has ended."""
        while self._recovery is not None:
            await self._changed.wait()

    # ---- draining and closed ---------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Take no more work, begin no more recovery, wait for what runs, give everything back; idempotent.

        Whoever closes while another does waits for it. Not to be called by work that the host runs. A cancellation,
        also by a time-out, shortens nothing: it goes on as one when the host is closed. How long is waited for what
        runs is for `drain_seconds` to say.

        Raises:
            ExceptionGroup: what failed in the background; everything was given back all the same.
        """
        if self._opening is None:
            self.phase = Phase.CLOSED
        elif self.phase is Phase.READY:
            self.phase = Phase.DRAINING
            until = anyio.current_time() + self._drain_seconds
            try:
                await _to_the_end(partial(self._drain, until))
            finally:
                await self._give_back()
            if self.errors:
                raise ExceptionGroup("work in the background failed", self.errors)
        else:
            self._opening.cancel()
            await _to_the_end(self._given_back.wait)

    async def _drain(self, until: float) -> None:
        """Wait for what runs until then, and for what was cancelled a while longer; may be begun anew."""
        if self._recovery is not None:
            self._recovery.cancel()
        with CancelScope(deadline=until):
            await self._quiet()
        for scope in self._live:
            scope.cancel()
        with anyio.move_on_after(CANCEL_SECONDS) as waiting:
            await self._quiet()
        if waiting.cancelled_caught:
            self.errors.append(TimeoutError(f"{len(self._live)} runs did not end when they were cancelled"))

    async def _quiet(self) -> None:
        """Wait until nothing lives and recovery has ended."""
        while self._live or self._recovery is not None:
            await self._changed.wait()

    def _tell_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _give_back(self) -> None:
        try:
            await in_thread(self._close_parts)
        finally:
            self.phase = Phase.CLOSED
            self._given_back.set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close. What failed in the background is raised, or noted on the error that ends the block."""
        try:
            await self.aclose()
        except ExceptionGroup as group:
            if error is None:
                raise
            for lost in group.exceptions:
                error.add_note(f"in the background: {type(lost).__name__}: {lost}")
        finally:
            await self._end_tasks()

    async def _end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.cancel_scope.cancel()  # nothing of it is left that was waited for
            await tasks.__aexit__(None, None, None)


async def _to_the_end(work: Callable[[], Awaitable[None]]) -> None:
    """Await what may be begun anew, whatever cancels the task; a cancellation of the event loop goes on afterwards."""
    if (cancelled := await waited_out(work)) is not None:
        raise cancelled
