"""Put the use cases together by their constructors, without the container: what keeps a port's contract fits.

    python examples/without_the_container.py FOLDER

Here every port is served from memory. A team puts its own adapters in their places, and proves them with
`safepoint.ports.contract_kit`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import anyio

from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.memory.incarnations import MemoryHost, MemoryIncarnations
from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.supervisor import MemorySupervisor
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.agent import Agent
from safepoint.application.async_ledger import AsyncLedger
from safepoint.application.drive_run import DriveRun
from safepoint.application.ledger import Ledger
from safepoint.application.live_operations import LiveOperations
from safepoint.application.live_runs import LiveRuns
from safepoint.application.open_ends import end_of
from safepoint.application.ownership import SessionOwnership
from safepoint.application.repair_session import RepairSession
from safepoint.application.run_agent import RunAgent, Screen
from safepoint.application.run_turn import RunTurn
from safepoint.application.spines import Spines
from safepoint.application.start_turn import StartTurn
from safepoint.domain.identifiers import SessionId
from safepoint.ports.event_store import EventStore
from safepoint.ports.incarnations import Incarnations
from safepoint.ports.session_owners import SessionOwners


def run_turn(events: EventStore, owners: SessionOwners, incarnations: Incarnations) -> RunTurn:
    """The use case of a turn, over a store and an idea of who lives that may be a team's own."""
    ids, sink, live = Uuid7Ids(), CollectingSink(), LiveOperations()
    spines, ledger = Spines(SystemClock(), ids), Ledger(events, owners)
    async_ledger = AsyncLedger(ledger)
    ends = partial(end_of, ledger)
    ownership = SessionOwnership(owners, incarnations, ledger.forget, live.of, ends, live.when_over)
    run_agent = RunAgent(async_ledger, spines, ids, RecordingFailpoints(), MemorySupervisor(), MemoryJobs(), live)
    drive = DriveRun(run_agent, ownership, LiveRuns(), live, sink)
    repair = RepairSession(ledger, spines, sink)
    return RunTurn(ownership, repair, StartTurn(events, async_ledger, spines), drive)


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}."


async def main(folder: Path) -> None:
    """Take a turn."""
    store = MemoryStore()
    turn = run_turn(store.events, store.owners, MemoryIncarnations(MemoryHost()))
    model = PlannedModel([calls(("greet", {"name": "world"})), says("I greeted.")])
    gate = AllowListGate(["greet"], otherwise=DenyGate())
    agent = Agent(model, FunctionCatalog([greet]), gate, "Be polite.", folder, None)
    result = await turn(SessionId("greeting"), "Greet the world.", agent, Screen())
    print(result.outcome.status, "-", result.outcome.text)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]).resolve())
