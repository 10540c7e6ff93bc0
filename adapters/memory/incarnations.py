"""Incarnations of processes that exist in memory alone."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field

from ...domain.identifiers import IncarnationId
from ...ports.incarnations import HeldIncarnation, Incarnation, Incarnations, Liveness

HOST, BOOT_ID, PID_NAMESPACE = "memory", "boot-1", "namespace-1"


@dataclass
class _Life:
    incarnation: Incarnation
    process: MemoryIncarnations
    held: bool = True
    has_lock_file: bool = True


@dataclass
class MemoryHost:
    """What processes of one host share: lock files, and the next pid."""

    lives: dict[IncarnationId, _Life] = field(default_factory=dict)
    told: dict[IncarnationId, Liveness] = field(default_factory=dict)
    pids: itertools.count[int] = field(default_factory=lambda: itertools.count(1001))
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    turn: threading.RLock = field(default_factory=threading.RLock)


class MemoryIncarnations(Incarnations):
    """One process of a host; several objects over one host are several processes.

    Attributes:
        ends: whether this process ends when another asks, or kills it; False for one that hangs in the kernel.
    """

    def __init__(self, host: MemoryHost | None = None) -> None:
        self.host = host or MemoryHost()
        self.ends = True
        self._pid = next(self.host.pids)
        self._start_time = self._pid * 10

    def enter(self) -> HeldIncarnation:
        """Begin a life."""
        with self.host.turn:
            incarnation = Incarnation(
                incarnation_id=IncarnationId(f"incarnation-{next(self.host.numbers)}"),
                pid=self._pid,
                process_start_time=self._start_time,
                host=HOST,
                boot_id=BOOT_ID,
                pid_namespace=PID_NAMESPACE,
            )
            life = self.host.lives[incarnation.incarnation_id] = _Life(incarnation, self)
            return _HeldLife(life, self.host)

    def probe(self, incarnation: Incarnation) -> Liveness:
        """What was told by `tell`, else what the lock says."""
        with self.host.turn:
            told = self.host.told.get(incarnation.incarnation_id)
            if told is not None:
                return told
            life = self.host.lives.get(incarnation.incarnation_id)
            another_boot = incarnation.host == HOST and incarnation.boot_id != BOOT_ID
            if life is None or not life.has_lock_file:
                return Liveness.DEAD if another_boot else Liveness.COULD_NOT_LOOK
            if life.held:
                return Liveness.ALIVE
            return Liveness.DEAD if another_boot or life.incarnation == incarnation else Liveness.COULD_NOT_LOOK

    def end(self, incarnation: Incarnation, timeout_seconds: float) -> Liveness:
        """End the process whose pid and start time these are, unless it does not end."""
        with self.host.turn:
            life = self.host.lives.get(incarnation.incarnation_id)
            if life is not None and life.incarnation == incarnation and life.process is not self and life.process.ends:
                life.process.die()
            return self.probe(incarnation)

    def die(self) -> None:
        """Be killed: every life of this process ends, and its lock files stay."""
        with self.host.turn:
            for life in self.host.lives.values():
                if life.process is self:
                    life.held = False

    def tell(self, incarnation: Incarnation, liveness: Liveness | None) -> None:
        """Let every process see this from now on; None for the truth again."""
        with self.host.turn:
            if liveness is None:
                self.host.told.pop(incarnation.incarnation_id, None)
            else:
                self.host.told[incarnation.incarnation_id] = liveness

    def delete_lock_file(self, incarnation: Incarnation) -> None:
        """Delete the lock file, as somebody may who cleans up; its owner does not notice."""
        with self.host.turn:
            self.host.lives[incarnation.incarnation_id].has_lock_file = False


class _HeldLife(HeldIncarnation):
    def __init__(self, life: _Life, host: MemoryHost) -> None:
        self._life = life
        self._host = host

    @property
    def incarnation(self) -> Incarnation:
        """The facts that others read."""
        return self._life.incarnation

    def leave(self, *, keep_lock_file: bool) -> None:
        """End this life."""
        with self._host.turn:
            if self._life.held:
                self._life.held = False
                self._life.has_lock_file = keep_lock_file and self._life.has_lock_file
