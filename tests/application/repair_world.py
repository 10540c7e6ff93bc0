"""Processes over one store that own sessions, die, and repair what others left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.application.ledger import Ledger
from safepoint.application.live_operations import LiveOperations
from safepoint.application.open_ends import end_of
from safepoint.application.ownership import SessionOwnership
from safepoint.application.repair_everything import RepairEverything
from safepoint.application.repair_family import RepairFamily
from safepoint.application.repair_report import RepairReport, RepairStep
from safepoint.application.repair_session import RepairSession
from safepoint.application.spines import Spines
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.session import RunKind
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.sealing import SealedEvent
from safepoint.ports.event_store import EventStore

from ..domain.facts import Facts, prefix
from .ledger_world import World


class Life:
    """One process: what it owns, the runs that it opens, and repair as it would do it.

    Args:
        host: shared by the processes that can see one another's death.
        events: in place of the world's own, which is watched.
    """

    def __init__(self, world: World, host: MemoryHost, events: EventStore | None = None) -> None:
        self.world = world
        self.incarnations = MemoryIncarnations(host)
        self.ledger = Ledger(events or world.events, world.owners)
        self.live = LiveOperations()
        self.ownership = SessionOwnership(
            world.owners,
            self.incarnations,
            self.ledger.forget,
            self.live.of,
            partial(end_of, self.ledger),
            self.live.when_over,
        )
        self.sink = CollectingSink()
        self.repair = RepairSession(self.ledger, Spines(SystemClock(), Uuid7Ids()), self.sink)
        self.everything = RepairEverything(self.ledger, self.ownership, self.repair, world.store, world.store.views)
        self.family = RepairFamily(self.repair, self.ownership, world.store.views)

    def __call__(self, progress: Callable[[RepairStep], None] = lambda step: None) -> RepairReport:
        """Repair everything."""
        return self.everything(progress)

    def facts(self, session: str, run: str) -> Facts:
        """The facts of a run of a session that is owned; the use case that owns it has ended."""
        owned = self.ownership.own(SessionId(session))
        self.ownership.keep(owned)
        return Facts(run, session=session, incarnation=owned.incarnation_id, epoch=owned.epoch)

    def opens(self, session: str, *calls: str, child_of: Facts | None = None) -> Facts:
        """An open run, with a step that asks for these calls."""
        r = self.facts(session, f"r-{session}")
        if child_of is None:
            self.ledger.execute(r.open_run())
        else:
            operation = child_of.operation(next(iter(child_of.called), "c"))
            parent = {"parent_session_id": child_of.session_id, "parent_run_id": child_of.run_id}
            opened = r.opened(**parent, parent_operation_id=operation)
            self.ledger.execute(r.open_run(opened=opened, admitted=r.admitted(RunKind.CHILD)))
        if calls:
            self.ledger.execute(r.record(r.step(*calls)))
        return r

    def claims(self, session: str) -> Facts:
        """An unstarted claim of a run that ended; the facts of its target."""
        r = self.opens(session)
        self.ledger.execute(r.end())
        target = Facts(f"t-{session}", session=session, incarnation=r.incarnation_id, epoch=r.epoch)
        events = [one.event for one in self.world.stream(f"run:{r.run_id}")]
        self.ledger.execute(r.claim(target, [prefix(r, events)]))
        return target

    def dies(self) -> None:
        """Be killed."""
        self.incarnations.die()

    @property
    def repaired(self) -> list[RunId | None]:
        """The runs of which operators were told, in their order."""
        return [event.run_id for event in self.sink.events]


def all_bytes(world: World) -> dict[str, list[bytes]]:
    """Every stream, as it is stored."""

    def states(stream: list[SealedEvent]) -> list[bytes]:
        return [one.state for one in stream]

    return {name: states(world.stream(name)) for name in world.store.streams(limit=10_000)}


def endings(world: World) -> dict[str, list[str]]:
    """How often, and how, each run ended: by itself, or as repair says."""
    runs = [name for name in world.store.streams(limit=10_000) if name.startswith("run:")]
    ends = {name: [one.event for one in world.stream(name) if isinstance(one.event, RunEnded)] for name in runs}
    return {
        name: [str(event.failure_class or event.status) if event.recovered else "itself" for event in found]
        for name, found in ends.items()
    }
