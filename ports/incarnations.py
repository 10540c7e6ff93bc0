"""Who is alive: one incarnation is one life of one owning process. SPEC section 15 and F19."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ..domain.errors import SafepointError
from ..domain.identifiers import IncarnationIdField


class Liveness(StrEnum):
    """What could be learned about an incarnation. `could_not_look` is never death."""

    ALIVE = "alive"
    DEAD = "dead"
    COULD_NOT_LOOK = "could_not_look"


class Incarnation(BaseModel):
    """The recorded facts of one process life, enough to find it again and never to mistake another for it.

    Attributes:
        process_start_time: as the host counts it (Linux: clock ticks since boot); compared, never computed with.
        boot_id: names one boot of the host.
        pid_namespace: names the namespace in which `pid` means something.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    incarnation_id: IncarnationIdField
    pid: Annotated[int, Field(ge=1)]
    process_start_time: Annotated[int, Field(ge=0)]
    host: str
    boot_id: str
    pid_namespace: str


class OwnershipUnavailable(SafepointError):
    """This process cannot become an owner here; `detail` says what is missing and nothing was left behind."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"cannot own sessions here: {detail}")
        self.detail = detail


class HeldIncarnation(Protocol):
    """The lock that says "I live". Held from `enter` to `leave` or death, by this process alone, never by its forks."""

    @property
    @abstractmethod
    def incarnation(self) -> Incarnation:
        """The facts that others read."""

    @abstractmethod
    def leave(self, *, keep_lock_file: bool) -> None:
        """End this life in order; idempotent, and without any effect in a forked child.

        Args:
            keep_lock_file: keep the file, free, as the proof of death. Needed while a dispatch of this incarnation has
                no T2; without the file its end can no longer be seen by anybody.
        """


class Incarnations(Protocol):
    """Begins, observes and ends lives. All methods may be called from several threads and processes at once."""

    @abstractmethod
    def enter(self) -> HeldIncarnation:
        """Begin a life of this process: its lock is held when this returns.

        Raises:
            OwnershipUnavailable: the lock cannot be made, or does not exclude (a file system that only pretends to
                lock).
        """

    @abstractmethod
    def probe(self, incarnation: Incarnation) -> Liveness:
        """Look, without disturbing the owner or other observers.

        DEAD only when its own lock is free, or when the same host has another boot id. A missing or exchanged lock
        file, an error, another host or another pid namespace is COULD_NOT_LOOK; nothing expires by time.
        """

    @abstractmethod
    def end(self, incarnation: Incarnation, timeout_seconds: float) -> Liveness:
        """End the recorded process for a takeover and wait for its lock; answers what `probe` would say afterwards.

        The process is signalled only when it lives here with the recorded pid and start time, and is not the caller's
        own: asked first, then killed. Anything else is left alone.

        Args:
            timeout_seconds: bound on the whole of it; half of it, at most 15 s, is given to an orderly end.
        """
