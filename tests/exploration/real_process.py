"""The same deeds in real processes over one SQLite store: each stands before its commits, effects and requests until
the schedule, which is another process, lets it go on, or kills it.

Run as a program, this is a server that forks such processes: requests and answers are JSON lines.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio

from safepoint.adapters.memory.tool_catalog import MemoryCatalog
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.settings import Settings
from safepoint.adapters.sqlite.store import SqliteStore
from safepoint.application.agent import Agent
from safepoint.domain.identifiers import IncarnationId, OperationId, RunId, SessionId
from safepoint.ports.event_store import Commit, CommitAnswer, EventReader, EventStore
from safepoint.ports.incarnations import Incarnation
from safepoint.ports.model_provider import ModelRequest
from safepoint.ports.session_owners import Ownership, SessionOwners
from safepoint.ports.workspace import WorkspaceSeen

from . import process as deeds
from .process import Process, ScriptedModel
from .world import Effect, Seen, World

ResultT = TypeVar("ResultT")
EFFECTS, REQUESTS, TOLD = "effects", "requests", "told"
DEEDS: dict[str, Callable[[Process], object]] = {
    "turn": deeds.turn(),
    "new turn": deeds.turn("And now?"),
    "resume": deeds.resume,
    "repair": deeds.repair,
    "settle": deeds.settle,
    "take over by force": deeds.take_over_by_force,
    "take over by ending": deeds.take_over_by_ending,
}


class Gates:
    """What stands in for the world: each point is a connection to the schedule, which answers when it is time."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.rules = self

    def stands(self, process: Seen, point: str) -> None:
        """Wait for the schedule; where it is gone, so is this process."""
        with socket.socket(socket.AF_UNIX) as gate:
            gate.connect(str(self.folder / "schedule"))
            gate.sendall(json.dumps({"process": self.name, "thread": threading.get_ident(), "point": point}).encode())
            if not gate.recv(1):
                os._exit(1)

    def acts(self, effect: Effect) -> None:
        """Do something that can be counted from outside."""
        self._append(EFFECTS, {"operation": effect.operation_id, "tool": effect.tool})

    def answers(self, process: Seen, request: ModelRequest, run_id: RunId) -> None:
        """Write down what the provider was asked."""
        self._append(REQUESTS, {"run": run_id, "after": request.history[-1].event_id})

    def done(self, operation_id: OperationId) -> bool:
        """Whether the effect of an operation can be seen."""
        return any(one["operation"] == operation_id for one in lines_of(self.folder / EFFECTS))

    def exits(self, name: str) -> None:
        """It ends by itself."""

    def _append(self, name: str, entry: dict[str, Any]) -> None:
        descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, json.dumps(entry).encode() + b"\n")  # one write: lines of several processes never mix
        os.close(descriptor)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The entries of a file that others append to."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class RealProcess(Process):
    """One real process with the parts that it has in production; commits and owners are gated."""

    def __init__(self, runtime: OpenedStore, gates: Gates, tools: Sequence[str]) -> None:
        self.world = cast("World", gates)
        self.seen = Seen(gates.name)
        self.tools = tuple(tools)
        self.catalog = MemoryCatalog([self._tool(tool, supervised=False) for tool in tools])
        self.workspace = gates.folder / "workspace"
        self.parts = runtime.parts
        self.ownership = runtime.parts.ownership()
        self.incarnations = runtime.parts.incarnations()

    def agent(self) -> Agent:
        """The same agent, in a folder that is there."""
        seen = self.parts.workspaces().ensure(str(self.workspace))
        assert isinstance(seen, WorkspaceSeen)
        gate = AllowListGate([], DenyGate(), allow_all=True)
        model = ScriptedModel(self.world, self.seen, self.tools)
        return Agent(model, self.catalog, gate, "Be careful.", self.workspace, seen.identity)


class _Events(EventStore):
    def __init__(self, inner: EventStore, gates: Gates, seen: Seen) -> None:
        self._inner, self._gates, self._seen = inner, gates, seen

    def append(self, commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        self._gates.stands(self._seen, "commit")
        return self._inner.append(commits)

    def snapshot(self) -> AbstractContextManager[EventReader]:
        return self._inner.snapshot()

    def close(self) -> None:
        self._inner.close()


class _Owners(SessionOwners):
    def __init__(self, inner: SessionOwners, gates: Gates, seen: Seen) -> None:
        self._inner, self._gates, self._seen = inner, gates, seen

    def owner(self, session_id: SessionId) -> Ownership | None:
        return self._inner.owner(session_id)

    def take(self, session_id: SessionId, incarnation_id: IncarnationId, seen: Ownership | None) -> Ownership | None:
        self._gates.stands(self._seen, "take")
        return self._inner.take(session_id, incarnation_id, seen)

    def release(self, session_id: SessionId, incarnation_id: IncarnationId, epoch: int) -> bool:
        self._gates.stands(self._seen, "release")
        return self._inner.release(session_id, incarnation_id, epoch)

    def take_all(self, incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        self._gates.stands(self._seen, "take")
        return self._inner.take_all(incarnation_id, seen)

    def release_all(self, owned: Sequence[Ownership]) -> Sequence[bool]:
        self._gates.stands(self._seen, "release")
        return self._inner.release_all(owned)

    def register(self, incarnation: Incarnation) -> None:
        self._inner.register(incarnation)

    def incarnation(self, incarnation_id: IncarnationId) -> Incarnation | None:
        return self._inner.incarnation(incarnation_id)


def on_an_event_loop(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end on a real event loop."""

    async def main() -> ResultT:
        return await work

    return anyio.run(main)


def live(name: str, folder: Path, wanted: Sequence[str], tools: Sequence[str]) -> None:
    """Do deeds, one after another, and say what each came to."""
    vars(deeds)["complete"] = on_an_event_loop
    gates = Gates(name, folder)
    runtime = OpenedStore(Settings(store=folder / "store.sqlite"))
    store: SqliteStore = runtime.parts.store()
    seen = Seen(name)
    store.owners = _Owners(store.owners, gates, seen)  # type: ignore[assignment]
    runtime.parts.events.override(_Events(store.events, gates, seen))
    with runtime:
        me = RealProcess(runtime, gates, tools)
        me.does(*(DEEDS[deed] for deed in wanted))()
    (folder / f"{name}.{TOLD}").write_text(json.dumps(me.seen.told))


def serve() -> None:
    """Fork a process for each request, or say whether one has ended."""
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        if "reap" in request:
            pid, status = os.waitpid(request["reap"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(2, 1)
                live(request["name"], Path(request["folder"]), request["deeds"], request["tools"])
                os._exit(0)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
