"""What became of work that went on after its tool had returned. SPEC sections 5, 10 and 15."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from ..domain.events.event import Json
from ..domain.events.outside import JobKind, JobStatus
from ..domain.identifiers import HandleId, OperationId
from .supervised import ProcessInfo

MAIN_PROCESS = "main_process"
"""Member of a shell job's handle: true when the job is its operation's main process, whose exit is the job's own."""
PROCESSES = "processes"
"""Member of a shell job's handle: what ran when it was recorded, for people, as objects with pid and name."""


@dataclass(frozen=True, slots=True)
class JobHandle:
    """What `background.started` recorded, enough to find the job again."""

    handle_id: HandleId
    kind: JobKind
    operation_id: OperationId | None
    handle: Mapping[str, Json]


class JobRunning(NamedTuple):
    """It goes on; the processes are for people, and empty when they cannot be told."""

    processes: tuple[ProcessInfo, ...]


class JobSettled(NamedTuple):
    """Nothing of it runs any more.

    `status` is UNKNOWN where how it ended was not written down; never guessed as success.
    """

    status: JobStatus
    exit_code: int | None = None
    signal: int | None = None


class JobUnknown(NamedTuple):
    """Looked, and nobody here has ever heard of the handle. No proof that nothing runs."""


class JobNotSeen(NamedTuple):
    """Could not look. F1."""

    detail: str


JobObservation: TypeAlias = JobRunning | JobSettled | JobUnknown | JobNotSeen


class BackgroundWork(Protocol):
    """Looks jobs up by their handles, also those of dead owners. Methods may be called from several threads."""

    @abstractmethod
    def observe(self, handles: Sequence[JobHandle]) -> Sequence[JobObservation]:
        """Look at each, in their order, changing nothing. A job that is settled stays settled, with the same facts."""

    @abstractmethod
    def end(self, handle: JobHandle, timeout_seconds: float) -> JobObservation:
        """End all of a job, first asking, then by force, and say what is seen afterwards.

        Args:
            timeout_seconds: bound on the whole of it; JobRunning when it passed first.
        """
