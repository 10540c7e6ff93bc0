"""Tasks of one event loop that meet at the writer: one of them takes what all ask to a thread. SPEC section 7.

The tasks of a group wait for one event. A task that is cancelled by other means than anyio's gets no answer; but it
goes on only when its command is written, or never will be, and the others of its group are still told. ADR 0090.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import anyio
from anyio import CapacityLimiter, from_thread, get_cancelled_exc_class, lowlevel, to_thread

from ..domain.commands import AnyCommand
from ..domain.errors import StoreUnavailable
from .commit_round import Receipt

Answer: TypeAlias = Receipt | Exception


class _Asked:
    """A command that a task waits for."""

    __slots__ = ("answer", "command")

    def __init__(self, command: AnyCommand) -> None:
        self.command = command
        self.answer: Answer | None = None


class _Group:
    """What is asked together, and the one event that all wait for but the task that leads."""

    __slots__ = ("asked", "over")

    def __init__(self, leader: _Asked) -> None:
        self.asked = [leader]
        self.over = anyio.Event()


class TaskQueue:
    """Used by the tasks of one event loop alone.

    Args:
        execute_all: answers commands in their order; called in a thread.
    """

    def __init__(self, execute_all: Callable[[Sequence[AnyCommand]], Sequence[Answer]]) -> None:
        self._execute_all = execute_all
        self._limiter = CapacityLimiter(1)  # the loop keeps the thread for the next group
        self._forming: _Group | None = None
        self._written: _Group | None = None

    def __len__(self) -> int:
        """How many commands wait that no thread has."""
        return 0 if self._forming is None else len(self._forming.asked)

    async def execute(self, command: AnyCommand) -> Receipt:
        """Write a command; a lone one waits for nobody. Shielded: no scope's cancellation tears it.

        The event loop's own cancellation goes on once it is certain what became of the command.

        Raises:
            Exception: what `Ledger.execute` raises.
        """
        asked = _Asked(command)
        while asked.answer is None:
            group = self._forming
            if group is None:
                await self._lead(asked)
                continue
            group.asked.append(asked)
            try:
                await group.over.wait()
            except BaseException as error:  # noqa: BLE001 (it goes on, unless it came of a scope)
                await self._disturbed(group, asked, error)
        if isinstance(asked.answer, Exception):
            raise asked.answer
        return asked.answer

    async def _disturbed(self, group: _Group, asked: _Asked, error: BaseException) -> None:
        """Go on waiting where a scope cancels the task; a shield is made only where there is something to shield."""
        try:
            if not _is_of_a_scope(error):
                raise error
            with anyio.CancelScope(shield=True):
                await group.over.wait()
        except BaseException as cancelled:
            if group is self._forming:
                group.asked.remove(asked)
            elif isinstance(cancelled, get_cancelled_exc_class()):
                await _until_over(group)
            raise

    async def _lead(self, asked: _Asked) -> None:
        """Take all that wait to a thread, once it is free."""
        group = self._forming = _Group(asked)
        try:
            with anyio.CancelScope(shield=True):
                if self._written is not None:
                    await self._written.over.wait()
                await lowlevel.checkpoint()  # those that were answered just now may ask again, and come along
                self._forming, self._written = None, group
                await self._write(group)
        except BaseException:
            if group is self._forming:
                self._forming = None
                group.over.set()  # the others find another leader
            raise

    async def _write(self, group: _Group) -> None:
        handed = _Handed(group.asked, self._execute_all, lambda: self._end(group))
        try:
            await to_thread.run_sync(handed.execute, limiter=self._limiter)
        except BaseException as error:
            if not handed.leave():
                self._end(group)  # nobody was answered: the others ask again
            elif isinstance(error, get_cancelled_exc_class()):
                await _until_over(group)
            raise
        self._end(group)

    def _end(self, group: _Group) -> None:
        """Wake all of a group, and whoever leads the next one."""
        if group is self._written:
            self._written = None
        group.over.set()


async def _until_over(group: _Group) -> None:
    """Wait for the thread that writes a group, whatever cancels the task meanwhile: it is cancelled already."""
    while not group.over.is_set():
        with suppress(get_cancelled_exc_class()), anyio.CancelScope(shield=True):
            await group.over.wait()


def _is_of_a_scope(error: BaseException) -> bool:
    """Whether a task is cancelled by one of its scopes, from which a shield protects; not by its event loop alone."""
    if isinstance(error, Exception | GeneratorExit) or not isinstance(error, get_cancelled_exc_class()):
        return False
    return anyio.current_effective_deadline() == -math.inf


class _Handed:
    """A group that was handed to a thread."""

    def __init__(
        self,
        group: Sequence[_Asked],
        execute_all: Callable[[Sequence[AnyCommand]], Sequence[Answer]],
        end: Callable[[], None],
    ) -> None:
        self._group = group
        self._execute_all = execute_all
        self._end = end
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
                from_thread.run_sync(self._end)

    def leave(self) -> bool:
        """The task that waits for the thread is gone: False when the thread did not begin, and now never will."""
        if self._begun.acquire(blocking=False):
            return False
        self._left = True
        if self._answered:  # it looked before it could see that nobody waits
            self._end()
        return True
