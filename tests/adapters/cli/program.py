"""The program, called in this process or as a process of its own, over a store and a workspace of its own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.main import call

TIMEOUT_SECONDS = 60
WRITE: dict[str, Any] = {"tool": "write_file", "args": {"path": "config.json", "content": '{"port": 4000}'}}
PAY: dict[str, Any] = {"tool": "record_effect", "args": {"path": "effects.log", "line": "paid"}}
READ: dict[str, Any] = {"tool": "list_files", "args": {}}


@dataclass(frozen=True)
class Ran:
    """What a call of the program came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self
        found = json.loads(lines[0])
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Program:
    """The program with its store, workspace and script folder."""

    folder: Path
    capture: pytest.CaptureFixture[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.folder / "state" / "store.sqlite"

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def effects(self) -> list[str]:
        """Lines that `PAY` has written."""
        log = self.workspace / "effects.log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def requests(self) -> int:
        """How often the scripted provider was asked, over all processes."""
        log = self.folder / "requests.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def script(self, *steps: dict[str, Any], **more: Any) -> Path:
        """Write a script; by default: write a file and record a payment, then be done."""
        played = steps or ({"text": "I do it.", "calls": [WRITE, PAY]}, {"text": "All done."})
        path = self.folder / "script.json"
        path.write_text(json.dumps({"calls_log": "requests.log", "steps": played, **more}))
        return path

    def arguments(self, *arguments: str | Path) -> list[str]:
        return [str(argument) for argument in (*arguments, "--store", self.store)]

    def __call__(self, *arguments: str | Path) -> Ran:
        """Call the program in this process, with the store."""
        return self.bare(*self.arguments(*arguments))

    def bare(self, *arguments: str | Path) -> Ran:
        """Call the program in this process, with nothing added."""
        assert self.capture is not None
        self.capture.readouterr()
        code = call([str(argument) for argument in arguments])
        captured = self.capture.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)

    def start(self, *arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
        """Start the program as a process of its own, with the store."""
        return subprocess.Popen(
            [sys.executable, "-m", "safepoint", *self.arguments(*arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.environment, **environment},
        )

    def process(self, *arguments: str | Path, **environment: str) -> Ran:
        """Run the program as a process of its own, to its end."""
        return ended(self.start(*arguments, **environment))

    def until_stopping(self, session: str) -> None:
        """Wait until it is recorded that somebody stops the newest run of a session."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self("show", session, "--json").document["run"]["cancel_requested_by"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def killed_at(self, point: str, *arguments: str | Path) -> None:
        """Run the program as a process of its own that dies by SIGKILL at a failpoint."""
        ran = self.process(*arguments, SAFEPOINT_TEST_HOOKS="1", SAFEPOINT_FAILPOINT=point)
        assert ran.code == -9, ran

    def run(self, *more: str | Path) -> tuple[str | Path, ...]:
        """Arguments of a scripted turn."""
        return ("run", "Do it.", "--script", self.folder / "script.json", "--workspace", self.workspace, *more)

    def bytes_of_store(self) -> dict[str, str]:
        """Digests of what holds facts: database, WAL and anchor. An empty WAL holds none."""
        names = (self.store, Path(f"{self.store}-wal"), Path(f"{self.store}.anchor"))
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in names
            if path.exists() and path.stat().st_size
        }


def ended(process: subprocess.Popen[str]) -> Ran:
    """Wait for a process that was started, and read what it said."""
    with process:
        try:
            out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert "Traceback" not in err
    return Ran(process.returncode, out, err)


def program_in(folder: Path, capture: pytest.CaptureFixture[str] | None = None) -> Program:
    """A program with a fresh workspace and a folder for its store."""
    program = Program(folder, capture, {"XDG_STATE_HOME": str(folder / "xdg"), "SAFEPOINT_STORE": ""})
    program.workspace.mkdir()
    program.store.parent.mkdir()
    return program
