"""This process's life as an owner, and what is seen of other lives. SPEC section 15."""

from __future__ import annotations

import threading

from ..domain.identifiers import IncarnationId
from ..ports.incarnations import HeldIncarnation, Incarnation, Incarnations, Liveness
from ..ports.session_owners import SessionOwners


class KnownLives:
    """The incarnation of this process, and the liveness of all others.

    Args:
        owners: registers lives, and knows their facts.
        incarnations: begins and observes lives.
    """

    def __init__(self, owners: SessionOwners, incarnations: Incarnations) -> None:
        self._owners = owners
        self._incarnations = incarnations
        self._held: HeldIncarnation | None = None
        self._dead: set[IncarnationId] = set()
        self._beginning = threading.Lock()

    @property
    def mine(self) -> Incarnation:
        """This process's life; begun and registered when it is first needed."""
        with self._beginning:
            if self._held is None:
                held = self._incarnations.enter()
                try:
                    self._owners.register(held.incarnation)
                except BaseException:
                    held.leave(keep_lock_file=False)  # a life that nobody knows owns nothing
                    raise
                self._held = held
            return self._held.incarnation

    @property
    def begun(self) -> bool:
        """True from when this process's life as an owner began until it was left."""
        return self._held is not None

    def is_mine(self, incarnation_id: IncarnationId) -> bool:
        """True when an incarnation is this process's life."""
        return self._held is not None and self._held.incarnation.incarnation_id == incarnation_id

    def of_this_process(self, life: Incarnation) -> bool:
        """True of every life of this very process, another runtime's too."""

        def process(one: Incarnation) -> tuple[object, ...]:
            return one.pid, one.process_start_time, one.boot_id, one.pid_namespace

        return process(life) == process(self.mine)

    def seen(self, incarnation_id: IncarnationId) -> tuple[Incarnation | None, Liveness]:
        """The facts of a life, and whether it is seen to live; one that was never registered could not be looked at."""
        facts = self._owners.incarnation(incarnation_id)
        return facts, Liveness.COULD_NOT_LOOK if facts is None else self._incarnations.probe(facts)

    def liveness_of(self, incarnation_id: IncarnationId) -> Liveness:
        """Whether an incarnation lives, this one included; who was seen dead once is not looked at again."""
        if self.is_mine(incarnation_id):
            return Liveness.ALIVE
        if incarnation_id in self._dead:
            return Liveness.DEAD
        _, liveness = self.seen(incarnation_id)
        if liveness is Liveness.DEAD:
            self._dead.add(incarnation_id)  # for good: a life does not come back
        return liveness

    def living(self, incarnation_id: IncarnationId) -> Incarnation | None:
        """The facts of another life that is seen to live; None for all others."""
        if self.is_mine(incarnation_id) or self.liveness_of(incarnation_id) is not Liveness.ALIVE:
            return None
        return self._owners.incarnation(incarnation_id)

    def end(self, life: Incarnation, timeout_seconds: float) -> Liveness:
        """End another life, never this one; answers what is then seen of it."""
        return Liveness.ALIVE if self.is_mine(life.incarnation_id) else self._incarnations.end(life, timeout_seconds)

    def leave(self, *, keep_lock_file: bool) -> None:
        """End this life; idempotent. The lock goes last, so call this after everything else is closed."""
        if self._held is not None:
            self._held.leave(keep_lock_file=keep_lock_file)
            self._held = None
