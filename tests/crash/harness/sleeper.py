"""A process that a tool leaves behind: it does the tool's effect when it is let go, and not before."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

from .program import state_of, wait_for
from .record import lines_of

PROGRAM: Final = "sleeper.sh"
EFFECTS: Final = "effects.txt"
_GO: Final = "go"
_PIDS: Final = "sleeper.pids"
_SECONDS_MAX: Final = 60
"""It never outlives the tests for long, whatever happens to them."""
_SECONDS_WHEN_RELEASED: Final = 0.3
"""Longer than a supervisor waits for what a program left behind, so that it is always left running."""
_TEXT: Final = f"""
if [ -e {_GO} ]; then sleep {_SECONDS_WHEN_RELEASED} & else sleep {_SECONDS_MAX} & fi
echo "$$ $!" > {_PIDS}.new; mv {_PIDS}.new {_PIDS}
wait
echo paid >> {EFFECTS}
"""
START: Final = f"sh {PROGRAM} > /dev/null 2>&1 < /dev/null & while [ ! -e {_PIDS} ]; do sleep 0.01; done"
"""The command that leaves one behind."""


class Sleeper:
    """The sleeper of one workspace.

    Args:
        workspace: where it is started.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def prepare(self) -> None:
        """Write its program."""
        (self._workspace / PROGRAM).write_text(_TEXT)

    @property
    def pid(self) -> int | None:
        """Its pid, None when it was not started."""
        pids = self._pids
        return pids[0] if pids else None

    @property
    def is_there(self) -> bool:
        """True while it runs."""
        return self.pid is not None and state_of(self.pid) not in {None, "Z"}

    @property
    def released(self) -> bool:
        """True when it was let go, or will be at once when it starts."""
        return (self._workspace / _GO).exists()

    def release(self) -> None:
        """Let it do its effect, now or as soon as it starts."""
        (self._workspace / _GO).touch()
        pids = self._pids
        if pids and _name_of(pids[1]) == "sleep":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids[1], signal.SIGTERM)

    def ended(self) -> None:
        """Wait for its end, if it was started."""
        wait_for("the sleeper does not end", lambda: not self.is_there)

    @property
    def _pids(self) -> list[int]:
        return [int(pid) for line in lines_of(self._workspace / _PIDS) for pid in line.split()]


def _name_of(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None
