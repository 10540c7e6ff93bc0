"""One experiment's place: a store, a workspace, a script to play, and what can be counted from outside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .fork_server import ForkServer
from .program import NO_HOOKS, Ended, Hooks, Program, Started
from .record import Record, fingerprint, lines_of, read_record
from .sleeper import Sleeper

SESSION = "s"


def call(tool: str, **args: object) -> dict[str, object]:
    """One scripted tool call."""
    return {"tool": tool, "args": args}


def step(text: str, *calls: dict[str, object], delay_seconds: float = 0) -> dict[str, object]:
    """One scripted model step."""
    return {"text": text, "calls": list(calls), "delay_seconds": delay_seconds}


@dataclass(frozen=True, slots=True)
class Stage:
    """Files under one folder, and the program that works on them."""

    folder: Path
    program: Program

    @classmethod
    def in_folder(cls, folder: Path, forks: ForkServer | None = None) -> Stage:
        """Make it."""
        stage = cls(folder, Program(folder, forks))
        stage.workspace.mkdir(parents=True)
        stage.sleeper.prepare()
        return stage

    @property
    def store(self) -> Path:
        """The database."""
        return self.folder / "store.sqlite"

    @property
    def workspace(self) -> Path:
        """Where the tools work."""
        return self.folder / "workspace"

    @property
    def script(self) -> Path:
        """What the model plays."""
        return self.folder / "script.json"

    def effects(self, name: str = "effects.txt") -> list[str]:
        """The effects that happened, counted from outside."""
        return lines_of(self.workspace / name)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What the provider was asked, one entry per request."""
        return [json.loads(line) for line in lines_of(self.folder / "calls.jsonl")]

    @property
    def record(self) -> Record:
        """The stored facts."""
        return read_record(self.store)

    @property
    def fingerprint(self) -> dict[str, str]:
        """The bytes that looking must not change."""
        return fingerprint(self.store)

    @property
    def sleeper(self) -> Sleeper:
        """What a tool may leave behind in the workspace."""
        return Sleeper(self.workspace)

    def clean_up(self) -> None:
        """Leave nothing running."""
        self.program.end_all()
        self.sleeper.release()

    def play(self, steps: Sequence[dict[str, object]]) -> None:
        """Write the script."""
        self.script.write_text(json.dumps({"calls_log": "calls.jsonl", "steps": list(steps)}))

    def start(self, *command: str, hooks: Hooks = NO_HOOKS, session: str = SESSION) -> Started:
        """Start `run PROMPT` or `resume` with everything that it needs."""
        return self.program.start(*self.arguments(*command, session=session), hooks=hooks)

    def do(self, *command: str, hooks: Hooks = NO_HOOKS, session: str = SESSION) -> Ended:
        """As `start`, to its end."""
        return self.start(*command, hooks=hooks, session=session).ended()

    def rehearse(self, *command: str) -> list[str]:
        """Do a command undisturbed, and name its instants in order; the files are then as it left them."""
        trace = self.folder / "rehearsal"
        self.do(*command, hooks=Hooks(trace=trace)).expect(0)
        return trace.read_text().split()

    def look(self, *command: str, session: str = SESSION) -> Ended:
        """A command that only reads, called in this process."""
        return self.program.look(*self.arguments(*command, session=session))

    def arguments(self, *command: str, session: str = SESSION) -> tuple[str, ...]:
        """A command with session, store, and what its kind needs beside."""
        verb = command[0]
        common = ["--store", str(self.store), "--json"]
        if verb != "verify":
            common += ["--session", session]
        if verb in {"run", "plan", "resume"}:
            common += ["--script", str(self.script)]
        if verb == "run":
            common += ["--workspace", str(self.workspace)]
        return (*command, *common)
