"""Tell operators in a way of your own: a sink that counts what the runtime decides.

    python examples/own_sink.py FOLDER

The folder exists and is empty. The program runs one turn, and prints what operators were told of it.
"""

# Overriding a provider is only partly typed by the container's own package.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import anyio

from safepoint.adapters.models.script import Script, ScriptedStep
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.adapters.observation.logging_sink import LoggingSink
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.settings import Settings
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.agent import Agent
from safepoint.application.run_agent import Screen
from safepoint.domain.identifiers import SessionId
from safepoint.ports.lifecycle_sink import LifecycleEvent, LifecycleSink


class Counting(LifecycleSink):
    """Counts what was told; whatever a sink does, the run goes on."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()

    def record(self, event: LifecycleEvent) -> None:
        """Take note of an event."""
        self.kinds[event.kind.value] += 1


async def turn(runtime: OpenedStore, folder: Path) -> None:
    """Say hello."""
    model = ScriptedModel(Script(steps=(ScriptedStep(text="Hello."),)))
    agent = Agent(model, FunctionCatalog([]), DenyGate(), "Be brief.", folder, None)
    await runtime.parts.run_turn()(SessionId("s"), "Hi.", agent, Screen())


def told(folder: Path) -> Counter[str]:
    """Run a turn, and count what operators are told of it."""
    counting = Counting()
    with OpenedStore(Settings(folder / "store.sqlite")) as runtime:
        runtime.parts.sinks.override([counting, LoggingSink()])
        anyio.run(turn, runtime, folder)
    return counting.kinds


if __name__ == "__main__":
    for kind, count in told(Path(sys.argv[1])).items():
        print(kind, count)
