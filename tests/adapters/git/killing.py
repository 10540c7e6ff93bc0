"""Checkpoints that are made in processes that can be killed.

Run as a program, it imports the adapter and forks for each job, a line of JSON, so that a kill costs milliseconds. A
job leads a process group of its own, with the `git` processes that it starts.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Self

WRAPPER = """#!/bin/sh
n=$(($(cat "$COUNT_FILE") + 1))
echo $n > "$COUNT_FILE"
if [ $n = "$KILL_AT" ]; then
    case $KILL_WHEN in
        before) kill -9 $PPID; exit 1 ;;
        during) exec 3<&0; "$REAL_GIT" "$@" <&3 & kill -9 $PPID 0 ;;
        after) "$REAL_GIT" "$@"; kill -9 $PPID; exit 1 ;;
    esac
fi
exec "$REAL_GIT" "$@"
"""


class Jobs:
    """The process that forks, and what it is told."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", str(Path(__file__))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self._process.communicate()

    def start(self, **job: object) -> int:
        """Start a job and return its process group."""
        _of(self._process.stdin).write(json.dumps(job) + "\n")
        _of(self._process.stdin).flush()
        return int(_of(self._process.stdout).readline())

    def wait(self) -> bool:
        """Wait for the job; True where it was killed."""
        return int(_of(self._process.stdout).readline()) == -signal.SIGKILL

    def run(self, **job: object) -> bool:
        self.start(**job)
        return self.wait()


def killing_at(place: Path, at: int, when: str) -> dict[str, str]:
    """An environment in which the `at`th command of Git, and with it the one who started it, is killed."""
    program = place / "bin" / "git"
    program.parent.mkdir(exist_ok=True)
    program.write_text(WRAPPER)
    program.chmod(0o755)
    (place / "count").write_text("0")
    real = shutil.which("git")
    assert real is not None
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {
        "PATH": path,
        "REAL_GIT": real,
        "COUNT_FILE": str(place / "count"),
        "KILL_AT": str(at),
        "KILL_WHEN": when,
    }


def _of(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _work(job: dict[str, Any]) -> None:
    from safepoint.adapters.git.checkpoints import GitCheckpoints
    from safepoint.adapters.system.clock import SystemClock
    from safepoint.ports.checkpoints import Checkpoint

    os.setsid()
    os.environ.update(job["environment"])
    checkpoints = GitCheckpoints(Path(job["place"]), SystemClock())
    if job["what"] == "capture":
        checkpoints.capture(job["folder"], job["key"])
    elif job["what"] == "materialize":
        checkpoints.materialize(job["folder"], Checkpoint(*job["checkpoint"]), job["target"])
    elif job["what"] == "remove":
        checkpoints.remove(job["folder"], job["ref"])
    else:
        checkpoints.verify(job["folder"], Checkpoint(*job["checkpoint"]))


def main() -> None:
    import safepoint.adapters.git.checkpoints
    import safepoint.adapters.system.clock  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _work(json.loads(line))
                code = 0
            finally:
                os._exit(code)
        _tell(child)
        _tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
