"""Tasks of one event loop that meet at the writer: one of them takes what all ask to a thread. SPEC section 7.

Each task waits on an event of its own. Where the task that leads is cancelled by other means than anyio's, its thread
goes on, and what came of it is still told to the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

import anyio
from anyio import CapacityLimiter, from_thread, lowlevel, to_thread

from ..domain.commands import AnyCommand
from ..domain.errors import StoreUnavailable
from .commit_round import Receipt

Answer: TypeAlias = Receipt | Exception


class _Asked:
    """A command that a task waits for; its event is set when it is answered, or when its task is to lead."""

    __slots__ = ("answer", "command", "woken")

    def __init__(self, command: AnyCommand) -> None:
        self.command = command
        self.woken = anyio.Event()
        self.answer: Answer | None = None


class TaskQueue:
    """Used by the tasks of one event loop alone.

    Args:
        execute_all: answers commands in their order; called in a thread.
    """

    def __init__(self, execute_all: Callable[[Sequence[AnyCommand]], Sequence[Answer]]) -> None:
        self._execute_all = execute_all
        self._limiter = CapacityLimiter(1)  # the loop keeps the thread for the next group
        self._waiting: list[_Asked] = []
        self._leader: _Asked | None = None

    async def answer(self, command: AnyCommand) -> Answer:
        """What came of a command; a lone one waits for nobody."""
        asked = _Asked(command)
        self._waiting.append(asked)
        try:
            if self._leader is None:
                self._leader = asked
            else:
                await asked.woken.wait()
            if asked.answer is None:
                await self._lead()
        except BaseException:
            self._withdraw(asked)
            raise
        assert asked.answer is not None
        return asked.answer

    async def _lead(self) -> None:
        """Take all that wait to a thread."""
        await lowlevel.checkpoint()  # those that were answered just now may ask again, and come along
        group, self._waiting = self._waiting, []
        handed = _Handed(group, self._execute_all, self._deliver)
        try:
            await to_thread.run_sync(handed.execute, limiter=self._limiter)
        except BaseException:
            if not handed.leave():
                self._waiting[:0] = group
            raise
        self._deliver(group)

    def _deliver(self, group: Sequence[_Asked]) -> None:
        """Wake whoever was answered, and the first of those who came meanwhile."""
        for asked in group:
            asked.woken.set()
        if self._leader in group:
            self._pass_on()

    def _pass_on(self) -> None:
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.woken.set()

    def _withdraw(self, asked: _Asked) -> None:
        """A task is gone that had no answer yet; if it led and its command still waited, another one leads."""
        if asked in self._waiting:
            self._waiting.remove(asked)
            if self._leader is asked:
                self._pass_on()


class _Handed:
    """A group that was handed to a thread."""

    def __init__(
        self,
        group: Sequence[_Asked],
        execute_all: Callable[[Sequence[AnyCommand]], Sequence[Answer]],
        deliver: Callable[[Sequence[_Asked]], None],
    ) -> None:
        self._group = group
        self._execute_all = execute_all
        self._deliver = deliver
        self._begun = threading.Lock()
        self._answered = False
        self._left = False

    def execute(self) -> None:
        """Answer the group, in the thread, unless it was taken back."""
        if not self._begun.acquire(blocking=False):
            return
        answers: Sequence[Answer] = [StoreUnavailable("the writer was interrupted")] * len(self._group)
        try:
            answers = self._execute_all([asked.command for asked in self._group])
        finally:
            for asked, answer in zip(self._group, answers, strict=True):
                asked.answer = answer
            self._answered = True
            if self._left:
                from_thread.run_sync(self._deliver, self._group)

    def leave(self) -> bool:
        """The task that waits for the thread is gone: False when the thread did not begin, and now never will."""
        if self._begun.acquire(blocking=False):
            return False
        self._left = True
        if self._answered:  # it looked before it could see that nobody waits
            self._deliver(self._group)
        return True
