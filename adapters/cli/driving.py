"""Driving a run on the terminal: what is shown while it works, and how it is stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...application.agent import Agent
from ...application.live_runs import LiveRun
from ...application.run_agent import Screen
from ...domain.events.model import HostMessage
from ..opened_store import OpenedStore
from .command_lines import CommandLines
from .escaping import one_line
from .interrupts import Interrupts
from .persons import person
from .policies import Hearing
from .screen import LiveScreen

ResultT = TypeVar("ResultT")
Work = Callable[[Screen, Callable[[LiveRun], None]], Awaitable[ResultT]]


class Driving:
    """Drives one run.

    Args:
        permissions: which calls need a person, and who says so; shown when the run begins (r3-117).
        hearing: told whether commands from other terminals can be heard.

    Attributes:
        begun: True once the run has its first commit.
    """

    def __init__(self, runtime: OpenedStore, permissions: str, hearing: Hearing) -> None:
        self.live_screen = LiveScreen()
        self._hearing = hearing
        self._permissions = permissions
        self.begun = False
        self._runtime = runtime
        bound = runtime.parts.settings().cancel_bound_seconds
        self._interrupts = Interrupts(person(), self.live_screen.line, bound)

    @property
    def exit_code_of_signal(self) -> int | None:
        """128 and the signal's number where one stopped the run."""
        received = self._interrupts.received
        return None if received is None else 128 + received.value

    @contextmanager
    def explaining(self, session_id: str, commands: CommandLines) -> Iterator[None]:
        """Where recording the run failed in the middle of it, say how to look at what stands."""
        try:
            yield
        except BaseException:
            if self.begun:
                look = commands.asking("plan", session_id)
                self.live_screen.line(f"The run stopped where it was; nothing is lost. What can be done: {look}")
            raise

    async def through(self, agent: Agent, work: Work[ResultT]) -> ResultT:
        """Await the work, visible to people here and elsewhere."""
        try:
            return await self._interrupts.watching(
                lambda started: work(self.live_screen.screen, lambda live: self._started(live, started))
            )
        finally:
            self.live_screen.end()
            await agent.provider.aclose()

    def _started(self, live: LiveRun, then: Callable[[LiveRun], None]) -> None:
        self.begun = True
        self._hearing.deaf = self._runtime.deaf
        if self._runtime.deaf is not None:
            self.live_screen.line(f"Commands from other terminals cannot be heard here: {self._runtime.deaf}")
        identity = live.recorder.identity
        self.live_screen.line(f"Session {identity.session_id}, run {identity.run_id}")
        self.live_screen.line(f"Permissions: {self._permissions}")
        for event in live.recorder.events:
            if isinstance(event, HostMessage):
                self.live_screen.line(f"The model is told: {one_line(event.text, 500)}")
        then(live)
