"""How a supervisor keeps hold of everything that its program starts. SPEC section 15."""

from __future__ import annotations

import os
import signal
import sys

from . import process_table
from .ending import signal_exactly

_PR_SET_CHILD_SUBREAPER = 36


class SubreaperTree:
    """Linux: whoever loses its parent becomes our child, so that being without children means that nothing is left.

    This holds for what double-forks, makes sessions and closes every descriptor.
    """

    recheck_seconds: float | None = None  # SIGCHLD tells

    def __init__(self) -> None:
        import ctypes

        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot become subreaper: {os.strerror(number)}")

    def is_empty(self, *, childless: bool, main: int) -> bool:
        """Whether nothing is left, given whether the last wait found no child at all."""
        return childless

    def living(self, main: int) -> list[process_table.Process]:
        """What lives now, as far as can be seen."""
        return process_table.descendants(os.getpid(), process_table.everything())

    def kill(self, main: int) -> None:
        """Kill our children: their pids are not used again before we reap them, and their children become ours."""
        me = os.getpid()
        for process in process_table.everything():
            if process.parent == me:
                os.kill(process.pid, signal.SIGKILL)


class ProcessGroup:
    """macOS: the program's process group.

    What makes a session or group of its own escapes, but keeps the lock it inherited.
    """

    recheck_seconds: float | None = 0.2

    def is_empty(self, *, childless: bool, main: int) -> bool:
        """Whether nothing is left in the group."""
        if not childless:
            return False
        try:
            os.killpg(main, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # macOS says so of a group of zombies
        # Zombies stay in the group until init reaps them. Two looks, since a process that forks may slip past one.
        return not self.living(main) and not self.living(main)

    def living(self, main: int) -> list[process_table.Process]:
        """What lives now in the group."""
        return process_table.members(main, process_table.everything())

    def kill(self, main: int) -> None:
        """Kill the group."""
        os.killpg(main, signal.SIGKILL)


def establish(kind: str) -> SubreaperTree | ProcessGroup:
    """Get hold of what will be started; `kind` is `subreaper` or `process_group`.

    Raises:
        OSError: the system refuses.
    """
    return SubreaperTree() if kind == "subreaper" else ProcessGroup()


def best_kind() -> str | None:
    """The strongest kind that this platform has, or None where there is none."""
    here: str = sys.platform
    if here.startswith("linux"):
        return "subreaper"
    return "process_group" if os.name == "posix" else None


def contained(
    kind: object, supervisor: int, main: int | None, table: list[process_table.Process]
) -> list[process_table.Process]:
    """What runs under a supervisor, as seen from any process."""
    if kind == "process_group":
        return [] if main is None else process_table.members(main, table)
    return process_table.descendants(supervisor, table)


def ask_to_end(processes: list[process_table.Process]) -> None:
    """Send SIGTERM to each, and SIGCONT, so that a stopped one can hear it."""
    for process in processes:
        for number in (signal.SIGTERM, signal.SIGCONT):
            signal_exactly(process.pid, process.start_time, number)
