"""Continues by itself what a crash interrupted, once for each interruption. SPEC section 17, F11 and ADR 0042.

Only what this start's repair closed is tried, and what an earlier one closed that died before its try had begun:
sessions that were left earlier wait for a person and are never woken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

import anyio
from anyio import CapacityLimiter, to_thread

from ..domain.events.run import RunStatus, Trigger
from ..domain.identifiers import RunId, SessionId
from ..domain.reasons import RevalidationCode
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from ..ports.views import PAGE_MAX, FamilyViews
from .agent import Agent
from .plan_resume import PlanRequest
from .repair_session import Repaired, RepairKind
from .resume_run import Continued, Parked

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


class Resume(Protocol):
    """How a continuation is planned and driven, as a person's would be."""

    def __call__(
        self, session_id: SessionId, agent: Agent, request: PlanRequest, driven: Callable[[], None], /
    ) -> Awaitable[Parked | Continued]:
        """Resume; `driven` is told when the run has begun, and whatever fails after that is told by who drives it."""


class AutoResume:
    """Tries each interrupted run once, with trigger `auto`; whether it may go on, the planner decides.

    Args:
        resume: the same path as a person's.
        agent_for: the host's agents.
        leave: gives a session up of which nothing is begun, so that it waits for a person.
        views: tell child runs apart, which wait for a person (SPEC section 11).
        sink: told of what fails before a run has begun.
        told: told what became of each; must not raise.
    """

    def __init__(
        self,
        resume: Resume,
        agent_for: AgentFor,
        leave: Callable[[SessionId], None],
        views: FamilyViews,
        sink: LifecycleSink,
        told: Callable[[Parked | Continued], None] = lambda result: None,
    ) -> None:
        self._resume = resume
        self._agent_for = agent_for
        self._give_up = leave
        self._views = views
        self._sink = sink
        self._told = told
        self._limiter: CapacityLimiter

    async def __call__(self, repaired: Sequence[Repaired], failed: Callable[[Exception], None]) -> None:
        """Try all; returns when each has ended. Cancelled, it begins no more, and what was begun is cancelled with it
        unless the host shields it.

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
        driven: list[bool] = []
        try:
            agent = await self._agent_of(interrupted)
            if agent is None:
                return
            request = PlanRequest(run_id=interrupted.run_id, trigger=Trigger.AUTO)
            result = await self._resume(interrupted.session_id, agent, request, lambda: driven.append(True))
            if isinstance(result, Parked) and RevalidationCode.CONTINUATION_CLAIM_CONFLICT not in result.changed:
                await self._leave(interrupted)  # else a claim of ours may stand, for which the session is kept
            self._told(result)
        except Exception as error:  # noqa: BLE001 (its owner raises it when the host is closed)
            if not driven:
                self._sink.record(_failed(interrupted, error))
            failed(error)
        finally:
            self._limiter.release_on_behalf_of(interrupted)

    async def _agent_of(self, interrupted: Interrupted) -> Agent | None:
        agent: Agent | None = None
        try:
            agent = await to_thread.run_sync(self._agent_for, interrupted)
        finally:
            if agent is None:
                await self._leave(interrupted)
        return agent

    async def _leave(self, interrupted: Interrupted) -> None:
        """Nothing is begun of it by this host: it waits for a person."""
        await to_thread.run_sync(self._give_up, interrupted.session_id)


def _failed(interrupted: Interrupted, error: Exception) -> LifecycleEvent:
    return LifecycleEvent(
        kind=LifecycleKind.EXECUTION_FAILED,
        session_id=interrupted.session_id,
        run_id=interrupted.run_id,
        error_class=type(error).__name__,
    )
