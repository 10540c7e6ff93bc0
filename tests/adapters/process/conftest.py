"""Real processes for the tests of the process adapters; each is ended by its own handle when its test is over."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HEAR_SECONDS_MAX = 60.0  # a bound for what never comes, not a measure
PREAMBLE = """
import os, signal, subprocess, sys, time
from pathlib import Path
from safepoint.adapters.process.handover import UnixSocketHandover
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.ports.supervised import Command
locks = Path(sys.argv[1])
def tell(*words):
    print(*words, flush=True)
"""

# Forks twice, makes a session, closes every descriptor, and lives until a file vanishes.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1024)
        with open(sys.argv[1] + ".pid", "w") as file:
            file.write(str(os.getpid()))
        while os.path.exists(sys.argv[1]):
            time.sleep(0.01)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1] + ".pid"):
    time.sleep(0.01)
"""


class Owner:
    """A process that runs a script with the locks folder at hand, and tells words in lines."""

    def __init__(self, script: str, locks: Path) -> None:
        command = [sys.executable, "-c", PREAMBLE + script, str(locks)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._heard = b""

    def hear(self) -> str:
        assert self.process.stdout is not None
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self.process.stdout], [], [], HEAR_SECONDS_MAX)
            chunk = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert chunk, f"the owner said no more than {self._heard!r}"
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def let_go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    return tmp_path / "store.locks"


@pytest.fixture
def start_owner(locks: Path) -> Iterator[Callable[[str], Owner]]:
    owners: list[Owner] = []

    def start(script: str) -> Owner:
        owners.append(Owner(script, locks))
        return owners[-1]

    yield start
    for owner in owners:
        owner.close()


class Daemon:
    """A process that detaches itself in every way it can, and lives until `end`."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker
        marker.touch()
        self.argv = (sys.executable, "-c", DAEMON, str(marker))

    @property
    def pid(self) -> int:
        return int(Path(f"{self._marker}.pid").read_text())

    def end(self) -> None:
        self._marker.unlink(missing_ok=True)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "lives")
    yield daemon
    daemon.end()
