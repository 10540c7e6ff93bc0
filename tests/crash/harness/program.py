"""The real program in a process of its own, started, killed and read from outside."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from safepoint.adapters.cli.main import call as cli

from .fork_server import Forked, ForkServer

KILLED: Final = -signal.SIGKILL.value
PATIENCE_SECONDS: Final = 120
"""Only a process that hangs takes so long; no test waits for it otherwise."""


class Hung(AssertionError):
    """Something that must happen did not within `PATIENCE_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is done to the program at its failpoints; each takes `POINT`, `POINT:N` or `random:N`.

    Attributes:
        kill: it dies by SIGKILL there.
        stop: it stops itself by SIGSTOP there, until somebody continues it.
        trace: a file that gets one line per hit.
    """

    kill: str = ""
    stop: str = ""
    trace: Path | None = None

    def environment(self) -> dict[str, str]:
        """For the child."""
        named = {"SAFEPOINT_FAILPOINT": self.kill, "SAFEPOINT_FAILPOINT_STOP": self.stop}
        asked = {name: value for name, value in named.items() if value}
        if self.trace is not None:
            asked["SAFEPOINT_FAILPOINT_TRACE"] = str(self.trace)
        return {"SAFEPOINT_TEST_HOOKS": "1", **asked} if asked else {}


NO_HOOKS: Final = Hooks()


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended.

    Attributes:
        exit_code: as `subprocess` tells it: minus the signal's number when a signal ended it.
    """

    arguments: tuple[str, ...]
    exit_code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object that it printed."""
        document: dict[str, Any] = json.loads(self.out)
        return document

    def expect(self, exit_code: int) -> dict[str, Any]:
        """Make sure of the exit code, with everything that it said when it is another; returns the document."""
        assert self.exit_code == exit_code, f"{self.arguments} ended {self.exit_code}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err, self.err
        return self.document if self.out else {}


@dataclass(slots=True)
class Started:
    """The program while it runs, in a process group of its own so that no signal reaches the tests."""

    arguments: tuple[str, ...]
    process: subprocess.Popen[str] | Forked

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        """Signal this process, and no other."""
        self.process.send_signal(number)

    def stopped(self, *, or_ended: bool = False) -> bool:
        """Wait until it has stopped itself; False when it has ended instead, where that is allowed."""
        wait_for(f"{self.arguments} does not stop", lambda: state_of(self.pid) in {"T", "Z", None}, every_seconds=0.005)
        stopped = state_of(self.pid) == "T"
        assert stopped or or_ended, f"it ended before it stopped: {self.ended()}"
        return stopped

    def go_on(self) -> None:
        """Continue it after it stopped itself."""
        self.send(signal.SIGCONT)

    def ended(self) -> Ended:
        """Wait for its end."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise Hung(f"{self.arguments} hangs\n{out}\n{err}") from None
        assert self.process.returncode is not None
        return Ended(self.arguments, self.process.returncode, out, err)

    def end(self) -> None:
        """Kill it if it still runs: for cleaning up."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@dataclass(slots=True)
class Program:
    """Starts `python -m safepoint`, as installed, in a folder that is not the checkout.

    Args:
        folder: the working folder and the user's state folder.
        forks: forks the processes, so that their start costs less; without it each is a new interpreter.
    """

    folder: Path
    forks: ForkServer | None = None
    started: list[Started] = field(default_factory=list)

    def start(self, *arguments: str, hooks: Hooks = NO_HOOKS, stdin: int = subprocess.DEVNULL) -> Started:
        """Start it and go on."""
        if self.forks is None:
            return self._start(("-m", "safepoint"), arguments, hooks, stdin)
        return self._keep(arguments, self.forks.start(arguments, self.folder, self._environment(hooks)))

    def run_python(self, *arguments: str, hooks: Hooks = NO_HOOKS) -> Ended:
        """Run another Python program with the same hooks, to its end."""
        return self._start((), arguments, hooks).ended()

    def _start(
        self, program: tuple[str, ...], arguments: tuple[str, ...], hooks: Hooks, stdin: int = subprocess.DEVNULL
    ) -> Started:
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=self.folder,
            env=self._environment(hooks),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        return self._keep(arguments, process)

    def _keep(self, arguments: tuple[str, ...], process: subprocess.Popen[str] | Forked) -> Started:
        self.started.append(Started(arguments, process))
        return self.started[-1]

    def run(self, *arguments: str, hooks: Hooks = NO_HOOKS) -> Ended:
        """Start it and wait for its end."""
        return self.start(*arguments, hooks=hooks).ended()

    def look(self, *arguments: str) -> Ended:
        """Call a command that only reads in this process: the same code as the program's, without its start."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            exit_code = cli(arguments)
        return Ended(arguments, exit_code, out.getvalue(), err.getvalue())

    def end_all(self) -> None:
        """Kill what was started and still runs."""
        for started in self.started:
            started.end()

    def _environment(self, hooks: Hooks) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SAFEPOINT_")}
        own = {"XDG_STATE_HOME": str(self.folder), "NO_COLOR": "1"}
        return {**inherited, **own, **hooks.environment()}


def state_of(pid: int) -> str | None:
    """The state letter of a process in the process table (`T` is stopped, `Z` is ended), None when it is not there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0]


def wait_for(what: str, happened: object, *, every_seconds: float = 0.02) -> None:
    """Wait until a callable says true.

    Args:
        what: for the message when it never does.
        happened: called without arguments.
    """
    assert callable(happened)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise Hung(what)
        time.sleep(every_seconds)
