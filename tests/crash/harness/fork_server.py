"""The tests' side of `forking`: processes that look like those of `subprocess`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

_PROGRAM = Path(__file__).with_name("forking.py")


class Forked:
    """One forked process; has of `subprocess.Popen` what the harness uses."""

    def __init__(self, server: ForkServer, pid: int, out: Path, err: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._out = out
        self._err = err

    def poll(self) -> int | None:
        """How it ended, None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.ask({"reap": self.pid})
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it; its pid is its own until `poll` has told its end."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; returns what it wrote."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.01)
        return self._out.read_text(), self._err.read_text()


class ForkServer:
    """Forks programs until it is closed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            env={name: value for name, value in os.environ.items() if not name.startswith("SAFEPOINT_")},
        )
        self._outputs = tempfile.TemporaryDirectory()
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
        self._outputs.cleanup()

    def start(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Forked:
        """Fork a process that runs the program."""
        self._started += 1
        out, err = (Path(self._outputs.name) / f"{self._started}.{name}" for name in ("out", "err"))
        out.touch()
        err.touch()
        files = {"folder": str(folder), "out": str(out), "err": str(err)}
        pid = self.ask({"arguments": list(arguments), "environment": dict(environment), **files})
        return Forked(self, pid, out, err)

    def ask(self, request: dict[str, Any]) -> Any:
        """One request and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())
