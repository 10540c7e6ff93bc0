"""Lets real processes go on one step at a time, in an order that is drawn, and kills some of them."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 0.02
"""How long a process that was let go on may take to come to more than one point: its calls run side by side."""
PROGRAM = "from tests.exploration.real_process import serve; serve()"


class Forks:
    """A server that forks gated processes."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            env={name: value for name, value in os.environ.items() if not name.startswith("SAFEPOINT_")},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=PATIENCE_SECONDS)

    def start(self, name: str, folder: Path, deeds: Sequence[str], tools: Sequence[str]) -> int:
        """Fork one; answers its pid."""
        pid: int = self._ask({"name": name, "folder": str(folder), "deeds": [*deeds], "tools": [*tools]})
        return pid

    def ended(self, pid: int) -> int | None:
        """How a process ended, None while it runs."""
        status: int | None = self._ask({"reap": pid})
        return status

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{json.dumps(request)}\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


@dataclass
class Standing:
    """A thread of a process that waits before something."""

    process: str
    point: str
    gate: socket.socket


@dataclass
class Schedule:
    """One drawn order.

    Args:
        kills: how many processes may be killed.

    Attributes:
        steps: what happened, in order.
        statuses: how each process ended.
    """

    forks: Forks
    folder: Path
    randomness: random.Random
    kills: int = 1
    steps: list[str] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self.folder / "schedule"))
        self._door.listen(16)
        self._standing: list[Standing] = []
        self._pids: dict[str, int] = {}

    def __call__(self, actors: Mapping[str, Sequence[str]], tools: Sequence[str]) -> None:
        """Run all to their ends."""
        try:
            for name, deeds in actors.items():
                self._pids[name] = self.forks.start(name, self.folder, deeds, tools)
                self._until_quiet(name)
            while self._pids:
                self._step()
        finally:
            for pid in self._pids.values():
                os.kill(pid, signal.SIGKILL)
            for one in self._standing:
                one.gate.close()
            self._door.close()

    def _step(self) -> None:
        assert self._standing, f"nobody stands, and {sorted(self._pids)} live: {self.steps}"
        one = self.randomness.choice(self._standing)
        if self.kills and self.randomness.random() < 0.08:
            self.kills -= 1
            self.steps.append(f"{one.process} is killed before {one.point}")
            os.kill(self._pids[one.process], signal.SIGKILL)
        else:
            self.steps.append(f"{one.process}: {one.point}")
            self._standing.remove(one)
            one.gate.sendall(b".")
            one.gate.close()
        self._until_quiet(one.process)

    def _until_quiet(self, name: str) -> None:
        """Wait until a process stands somewhere, or has ended; others may have ended it, or it them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            came = self._come()
            self._reap()
            if came:
                continue  # there may be more
            if name not in self._pids or any(one.process == name for one in self._standing):
                return
        raise AssertionError(f"{name} neither stands nor ends: {self.steps}")

    def _come(self) -> bool:
        if not select.select([self._door], [], [], QUIET_SECONDS)[0]:
            return False
        gate, _ = self._door.accept()
        said = json.loads(gate.recv(4096))
        self._standing.append(Standing(said["process"], said["point"], gate))
        return True

    def _reap(self) -> None:
        for name, pid in list(self._pids.items()):
            status = self.forks.ended(pid)
            if status is not None:
                self.statuses[name] = status
                del self._pids[name]
                for one in [one for one in self._standing if one.process == name]:
                    self._standing.remove(one)
                    one.gate.close()
