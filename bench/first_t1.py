"""One fresh process: import and open a store up to the first T1, or import what that stands on.

    python -m bench.first_t1 t1 STORE | core | required

Says how many seconds that took from the program's first line; starting Python itself is not counted. SPEC section 21.
"""

from __future__ import annotations

import time

STARTED = time.perf_counter()

import importlib  # noqa: E402 (the clock comes first)
import sys  # noqa: E402

sys.modules["pydantic_settings"] = None  # type: ignore[assignment]  # of an extra; the container takes it where it is there

DEPENDENCIES = {
    "anyio": ("CancelScope", "CapacityLimiter", "from_thread", "lowlevel", "to_thread"),
    "anyio.abc": ("TaskGroup",),
    "dependency_injector": ("containers", "providers"),
    "eventsourcing.sqlite": ("SQLiteApplicationRecorder", "SQLiteConnectionPool", "SQLiteCursor", "SQLiteDatastore"),
    "orjson": ("dumps", "loads"),
    "pydantic": (
        "BaseModel",
        "ConfigDict",
        "Field",
        "JsonValue",
        "StringConstraints",
        "TypeAdapter",
        "ValidationError",
    ),
    "rfc8785": ("dumps",),
}
"""What the hexagon, its store and the container import of what they stand on; some load their parts on demand."""
COMMAND_LINE = {"typer": ("Typer",), "rich.console": ("Console",), "rich.table": ("Table",)}
"""What is required beside that."""


def import_dependencies(which: str) -> None:
    """Import the core dependencies, or all that are required."""
    for module, names in (DEPENDENCIES if which == "core" else {**DEPENDENCIES, **COMMAND_LINE}).items():
        for name in names:
            if not hasattr(importlib.import_module(module), name):
                importlib.import_module(f"{module}.{name}")


def reach_t1(store: str) -> None:
    """Import, open a store that is not there yet, and record a run up to its first T1."""
    from pathlib import Path

    from safepoint.adapters.opened_store import OpenedStore
    from safepoint.adapters.settings import Settings
    from safepoint.domain.commands import OpenRun, PrepareTool, RecordStep
    from safepoint.domain.identifiers import SessionId
    from safepoint.ports.event_store import OwnerGuard

    from .facts import Facts, calls_of

    with OpenedStore(Settings(Path(store))) as runtime:
        ledger, owned = runtime.parts.ledger(), runtime.parts.ownership().own(SessionId("s"))
        guard, facts = OwnerGuard(owned.session_id, owned.incarnation_id, owned.epoch), Facts()
        identity = facts.spines.identity(guard.session_id)
        opening, step = facts.opening(guard, identity), facts.step(identity, 1)
        ledger.execute(OpenRun(*guard, opening.opened, opening.message, opening.admitted, opening.session_opened))
        ledger.execute(RecordStep(*guard, identity.run_id, tuple(step)))
        (call,) = calls_of(step)
        ledger.execute(PrepareTool(*guard, identity.run_id, facts.dispatched(guard, identity, call)))
        sys.stdout.write(f"{time.perf_counter() - STARTED}\n")


if __name__ == "__main__":
    if sys.argv[1] == "t1":
        reach_t1(sys.argv[2])
    else:
        import_dependencies(sys.argv[1])
        sys.stdout.write(f"{time.perf_counter() - STARTED}\n")
