"""Swap one part of the composition in a test: a store in memory, a clock that stands still, a sink that listens.

    python examples/swap_a_part.py FOLDER

The folder exists and is empty, and stays empty of any store.
"""

# Overriding a provider is only partly typed by the container's own package.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from dependency_injector import providers

import safepoint
from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.lifecycle_sink import CollectingSink


def in_memory(folder: Path, sink: CollectingSink) -> safepoint.Runtime:
    """A runtime that keeps nothing: each provider of `safepoint.Composition` may be overridden before it is entered."""
    runtime = safepoint.open(folder / "store.sqlite", model=safepoint.NamedModel("acme", "m1"))
    runtime.parts.store.override(providers.Object(MemoryStore()))
    runtime.parts.clock.override(providers.Object(ManualClock()))
    runtime.parts.sink.override(providers.Object(sink))
    return runtime


async def main(folder: Path) -> None:
    """Take a turn, and say what was told of it and kept."""
    sink = CollectingSink()
    async with in_memory(folder, sink) as runtime:
        session = runtime.session("greeting")
        async with session.record("Hello?") as run:
            await run.model_step(safepoint.step("Hello."))
        summary = await session.summary()
        assert summary is not None
        print(summary.state, "at", summary.row.head_ended_at)
    print("told:", *(event.kind for event in sink.events))


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    anyio.run(main, place)
    print("stores:", len(list(place.glob("*.sqlite"))))
