"""Runs what starts processes, so that the end of all of them can be proven. SPEC section 15 and F19."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from ..domain.errors import SafepointError
from ..domain.identifiers import OperationId
from .supervised import OperationStatus, Overness, ProcessInfo, SupervisedExit, Work


class SupervisorUnavailable(SafepointError):
    """No supervisor for this operation, so it must not be dispatched; nothing was started."""

    def __init__(self, operation_id: OperationId, detail: str) -> None:
        super().__init__(f"operation {operation_id} cannot be supervised: {detail}")
        self.operation_id = operation_id
        self.detail = detail


class WorkNotStarted(SafepointError):
    """The command could not be started: nothing of it ran (effect `none`)."""

    def __init__(self, operation_id: OperationId, detail: str) -> None:
        super().__init__(f"operation {operation_id} was not started: {detail}")
        self.operation_id = operation_id
        self.detail = detail


class SupervisorLost(SafepointError):
    """The supervisor died: what it started may run on, and only `probe_over` can tell."""

    def __init__(self, operation_id: OperationId) -> None:
        super().__init__(f"the supervisor of operation {operation_id} died; what it started may still run")
        self.operation_id = operation_id


class SupervisedSlot(Protocol):
    """One operation whose lock is held. Methods may be called from several threads.

    Order: `prepare`, T1, `start`, `wait`. If the owner dies before `start`, nothing is ever started; afterwards the
    lock is kept until the last process has ended, whatever became of the owner.
    """

    @abstractmethod
    def start(self, work: Work) -> None:
        """Start the work, once; returns when the program is running.

        Raises:
            WorkNotStarted: it could not be; the slot is finished.
            SupervisorLost: it cannot be told whether it was.
        """

    @abstractmethod
    def wait(self, timeout_seconds: float | None = None) -> SupervisedExit | None:
        """Wait for the main process to end; None when it still runs after `timeout_seconds`.

        Repeatable. Raises SupervisorLost.
        """

    @abstractmethod
    def end(self, *, grace_seconds: float = 2.0, timeout_seconds: float = 30.0) -> Overness:
        """Ask all processes to end, kill them after `grace_seconds`, and wait until the last has ended.

        OVER when none is left; RUNNING when the time-out passed first. In a slot without work: nothing is started any
        more.
        """

    @abstractmethod
    def release(self) -> None:
        """Let go of a slot that never had work (T1 failed): the lock file goes too. Idempotent.

        Raises:
            ValueError: work was started.
        """

    @abstractmethod
    def living(self) -> tuple[ProcessInfo, ...]:
        """The processes of the work that live now, without the supervisor itself; empty is no proof that it is over."""


class Supervisor(Protocol):
    """Makes slots, and tells any process that shares the store about operations of every other."""

    @abstractmethod
    def prepare(self, operation_id: OperationId) -> SupervisedSlot:
        """Hold the operation's lock before T1 commits.

        Raises:
            SupervisorUnavailable: not on this platform, no room, or an earlier delivery of the operation still runs.
        """

    @abstractmethod
    def probe_over(self, operation_id: OperationId) -> Overness:
        """OVER only when the lock is free or the host was booted since.

        A missing lock file is COULD_NOT_LOOK; nothing expires.
        """

    @abstractmethod
    def who_holds(self, operation_id: OperationId) -> tuple[ProcessInfo, ...]:
        """The processes to show to a person: the supervisor first (ending it ends all), then what it runs.

        Empty when none is found.
        """

    @abstractmethod
    def status(self, operation_id: OperationId) -> OperationStatus | None:
        """What was written down, or None when nothing readable was."""

    @abstractmethod
    def forget(self, operation_id: OperationId) -> bool:
        """Remove lock file and status once T2 is durable; False, and nothing removed, while the lock is held.

        Idempotent.
        """
