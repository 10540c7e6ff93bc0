"""Continues by itself what a crash interrupted, once for each interruption. SPEC section 17, F11 and ADR 0042.

Only what this start's repair closed is tried, and what an earlier one closed that died before its try had begun:
sessions that were left earlier wait for a person and are never woken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import anyio
from anyio import CancelScope, CapacityLimiter, to_thread
from anyio.lowlevel import checkpoint

from ..domain.events.run import RunStatus, Trigger
from ..domain.identifiers import RunId, SessionId
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from ..ports.views import PAGE_MAX, FamilyViews
from .agent import Agent
from .in_thread import in_thread
from .live_runs import LiveRun
from .ownership import SessionBusy, SessionOwnership
from .plan_resume import PlanRequest
from .repair_session import Repaired, RepairKind
from .resume_run import Continued, Parked, ResumeRun
from .run_agent import Screen

AT_ONCE_MAX = 4
"""How many continuations are driven at once; the others wait."""

_CLOSED = frozenset({RepairKind.RUN_CLOSED, RepairKind.CLAIM_REPAIRED, RepairKind.CLOSED_BEFORE})


class Interrupted(NamedTuple):
    """A run that died with its process."""

    session_id: SessionId
    run_id: RunId


def is_tried(repaired: Repaired) -> bool:
    """Whether what repair found is an interruption, of which nothing was begun yet."""
    return repaired.kind in _CLOSED and repaired.status is RunStatus.FAILED and repaired.run_id is not None


class AgentFor(Protocol):
    """What an interrupted run is to be continued with."""

    def __call__(self, interrupted: Interrupted, /) -> Agent | None:
        """The agent, or None where this host has none for it: then it waits for a person. May block."""


@dataclass(frozen=True, slots=True)
class Automatic:
    """Auto-resume, where it is enabled.

    Attributes:
        agent_for: what an interrupted run is continued with.
        screen_for: who watches it.
        told: told what became of each; must not raise.
    """

    agent_for: AgentFor
    screen_for: Callable[[SessionId], Screen] = lambda session_id: Screen()
    told: Callable[[Parked | Continued], None] = lambda result: None


class Admit(Protocol):
    """How a host takes work in, a person's or its own."""

    def __call__(self, work: Callable[[], Awaitable[Parked | Continued]], /) -> Awaitable[Parked | Continued]:
        """Do the work, which closing waits for."""


class AutoResume:
    """Tries each interrupted run once, with trigger `auto`; whether it may go on, the planner decides.

    Args:
        automatic: the host's agents and screens, and whom it tells.
        admit: takes each in like a person's: closing waits for it.
        resume: the same path as a person's.
        ownership: of the sessions, which are owned until their try has begun, or is not to be made.
        views: tell child runs apart, which wait for a person (SPEC section 11).
        sink: told of what fails before a run has begun; whatever fails after that is told by who drives it.
    """

    def __init__(
        self,
        automatic: Automatic,
        admit: Admit,
        resume: ResumeRun,
        ownership: SessionOwnership,
        views: FamilyViews,
        sink: LifecycleSink,
    ) -> None:
        self._automatic = automatic
        self._admit = admit
        self._resume_run = resume
        self._ownership = ownership
        self._views = views
        self._sink = sink
        self._limiter: CapacityLimiter

    async def __call__(self, repaired: Sequence[Repaired], failed: Callable[[Exception], None]) -> None:
        """Try all; returns when each has ended. Cancelled, it begins no more.

        Args:
            repaired: what repair closed at this start.
            failed: given each error, which stops none of the others.
        """
        self._limiter = CapacityLimiter(AT_ONCE_MAX)
        waiting = [
            Interrupted(one.session_id, one.run_id) for one in repaired if is_tried(one) and one.run_id is not None
        ]
        async with anyio.create_task_group() as group:
            for start in range(0, len(waiting), PAGE_MAX):
                page = waiting[start : start + PAGE_MAX]
                try:
                    children = await to_thread.run_sync(self._children, page)
                except Exception as error:  # noqa: BLE001 (its owner raises it when the host is closed)
                    failed(error)
                    for one in waiting[start:]:
                        await self._leave(one)
                    return
                for one in page:
                    if one.session_id in children:
                        await self._leave(one)
                        continue
                    await self._limiter.acquire_on_behalf_of(one)
                    group.start_soon(self._try, one, failed)

    def _children(self, interrupted: Sequence[Interrupted]) -> frozenset[SessionId]:
        """Sessions of child runs."""
        kinships = self._views.kinships([one.session_id for one in interrupted])
        return frozenset(one.session_id for one in kinships if one.parent_session_id is not None)

    async def _try(self, interrupted: Interrupted, failed: Callable[[Exception], None]) -> None:
        driven: list[LiveRun] = []
        try:
            agent = await to_thread.run_sync(self._automatic.agent_for, interrupted)
            if agent is None:
                await self._leave(interrupted)
                return
            result = await self._resume(interrupted, agent, driven.append)
            if isinstance(result, Parked):
                await self._leave(interrupted)
            self._automatic.told(result)
        except Exception as error:  # noqa: BLE001 (its owner raises it when the host is closed)
            failed(error)
            if not driven:
                self._sink.record(_failed(interrupted, error))
                await self._leave(interrupted)
        finally:
            self._limiter.release_on_behalf_of(interrupted)

    async def _resume(
        self, interrupted: Interrupted, agent: Agent, driven: Callable[[LiveRun], None]
    ) -> Parked | Continued:
        session_id, run_id = interrupted
        screen = self._automatic.screen_for(session_id)
        await checkpoint()

        async def work() -> Parked | Continued:
            with suppress(SessionBusy):  # somebody was faster, and the plan says so
                await in_thread(partial(self._ownership.take_anew, session_id))  # from here on the try counts
            request = PlanRequest(run_id=run_id, trigger=Trigger.AUTO)
            return await self._resume_run(session_id, agent, screen, driven, request)

        with CancelScope(shield=True):
            result = await self._admit(work)
        return result  # noqa: RET504 (by its type, a scope might swallow an error and go on)

    async def _leave(self, interrupted: Interrupted) -> None:
        """This host goes on with it no more: it waits for a person; or for repair, where something may be begun.

        Not where it was only cancelled: a try that was not begun is the next start's (ADR 0042).
        """
        await in_thread(partial(self._ownership.give_up_unused, interrupted.session_id))


def _failed(interrupted: Interrupted, error: Exception) -> LifecycleEvent:
    return LifecycleEvent(
        kind=LifecycleKind.EXECUTION_FAILED,
        session_id=interrupted.session_id,
        run_id=interrupted.run_id,
        error_class=type(error).__name__,
    )
