"""Processes whose runs are bound to the content of their workspace: files in memory, and tools that write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from safepoint.adapters.memory.checkpoints import MemoryCheckpoints
from safepoint.adapters.memory.model_provider import Planned, says
from safepoint.adapters.system.clock import SystemClock
from safepoint.adapters.tools.decorator import tool
from safepoint.application.accept_drift import AcceptDrift
from safepoint.application.agent import Agent, Binding
from safepoint.application.agent_loop import RunOutcome
from safepoint.application.run_agent import Screen
from safepoint.domain.file_evidence import FileChange

from .resuming import Resuming
from .wiring import SESSION, WORKSPACE, World, go

ISOLATED = "/isolated"


class Files:
    """The files of the world's folder: `write` changes one, `read` reads one."""

    def __init__(self, world: World) -> None:
        self.checkpoints = MemoryCheckpoints(SystemClock())
        self.checkpoints.make_folder(WORKSPACE, {"a.txt": b"a", "b.txt": b"b"})
        self.world = world
        self.written = 0

    @property
    def here(self) -> dict[str, bytes]:
        """What the folder holds."""
        return self.checkpoints.folders[WORKSPACE]

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """What a model may call."""

        def write(path: str, text: str) -> str:
            """Write."""
            self.written += 1
            self.here[path] = text.encode()
            return "written"

        @tool(recovery="replay_safe")
        def read(path: str) -> str:
            """Read."""
            return self.here[path].decode()

        return [write, read]


class Bound(Resuming):
    """A process whose agents keep the content of their workspace."""

    def __init__(self, files: Files, **more: Any) -> None:
        super().__init__(files.world, **more)
        self.files = files
        self.notes: list[tuple[str, str]] = []
        self.accept = AcceptDrift(
            self.events_store,
            self.ledger,
            self.ownership,
            self.repair,
            self.plan,
            files.world.workspaces,
            self.spines,
            files.world.ids,
            self.failpoints,
            self.capture.new_key,
            self._new_folder,
            _nothing_to_carry,
            lambda folder: folder == ISOLATED,
        )

    def bound(self, model: Sequence[Planned] = (), *, begin: bool = True, folder: str = WORKSPACE) -> Agent:
        """An agent that keeps the content of a folder."""
        agent = self.agent(list(model) or [says("done")], self.files.tools)
        identity = getattr(self.world.workspaces.observe(folder), "identity", None)
        return replace(
            agent,
            workspace=Path(folder),
            workspace_identity=identity,
            checkpoints=self.files.checkpoints,
            binding=Binding.ALWAYS if begin else Binding.NEVER,
        )

    def works(self, *model: Planned) -> RunOutcome:
        """Run a turn that is bound to its content."""
        screen = Screen(note=lambda name, what: self.notes.append((name, what)))
        run = partial(self.run_turn, SESSION, "go", self.bound(model), screen)
        return go(run).outcome

    def _new_folder(self) -> str:
        self.world.workspaces.make_folder(ISOLATED)
        return ISOLATED


def _nothing_to_carry(folder: str, target: str, changes: Sequence[FileChange]) -> str | None:
    assert not changes
    return None
