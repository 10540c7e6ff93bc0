"""Hosts over a store in memory, and processes that are killed before them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.application.auto_resume import AgentFor, Automatic, Interrupted
from safepoint.application.host import Host, HostParts
from safepoint.application.repair_everything import RepairEverything
from safepoint.application.resume_run import Continued, Parked
from safepoint.application.run_agent import Screen
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.model_provider import ModelRequest, StartProof
from safepoint.ports.model_step import ModelPart

from .resuming import Killed, killing
from .wiring import SESSION, Process, World, go

STEPS = (calls(("act", {"n": 1})), says("done"))


def act(n: int) -> str:
    """Act."""
    return f"acted {n}"


class Waits(PlannedModel):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__([says("done")])
        self.go_on = anyio.Event()

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        await self.go_on.wait()
        async for part in super().stream(request, proof):
            yield part


class Hosting(Process):
    """A process that is a host.

    Attributes:
        order: what was opened and given back, in order.
        models: of the agents that interrupted runs were continued with, by session.
        became: what became of interrupted runs, in order.
    """

    def __init__(self, world: World | None = None, **more: Any) -> None:
        super().__init__(world, **more)
        self.order: list[str] = []
        self.models: dict[SessionId, PlannedModel] = {}
        self.became: list[Parked | Continued] = []
        self.everything = RepairEverything(
            self.ledger, self.ownership, self.repair, self.world.store, self.world.store.views
        )

    def host(
        self,
        *,
        auto: bool = False,
        agent_for: AgentFor | None = None,
        screen_for: Callable[[SessionId], Screen] = lambda session_id: Screen(),
        **more: Any,
    ) -> Host:
        """A host, not opened yet."""
        automatic = Automatic(agent_for or self.agent_for, screen_for, self.became.append) if auto else None
        return Host(self._open, self._close, automatic=automatic, **more)

    def agent_for(self, interrupted: Interrupted) -> Any:
        """One that says that it is done."""
        model = self.models[interrupted.session_id] = PlannedModel([says("done")])
        return self.agent(model, [act])

    def _open(self) -> HostParts:
        self.order.append("open")
        return HostParts(
            self.everything, self.run_turn, self.resume_run, self.ownership, self.world.store.views, self.sink
        )

    def _close(self) -> None:
        self.order.append("close")


def interrupted(
    world: World, session: SessionId = SESSION, *, at: Failpoint = Failpoint.RESULT_DELIVERED, **more: Any
) -> RunId:
    """A run that was killed with its process; by default when its one call had its answer."""
    process = Process(world, at_failpoint=killing(at), **more)
    with pytest.raises((Killed, BaseExceptionGroup)):
        go(lambda: process.turn("go", STEPS, [act], session_id=session))
    process.die()
    return process.head(session)


def killed_resume(world: World, at: Failpoint, session: SessionId = SESSION, **how: Any) -> RunId:
    """A person's resume that was killed with its process; the run that it was to make."""
    process = Process(world, at_failpoint=killing(at))
    with pytest.raises(Killed):
        go(lambda: process.resume(STEPS[1:], [act], session_id=session, **how))
    process.die()
    return process.head(session)
