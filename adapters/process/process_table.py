# ruff: noqa: PTH119, PTH123, PTH208 - pathlib doubles the start of the supervisor
"""Which processes live, and who started whom. Standard library only, as the supervisor program imports it."""

from __future__ import annotations

import os
import sys

EXITING = 0x4  # PF_EXITING of Linux: the process is being taken down, its descriptors may be closed already


class Process:
    """One line of the process table.

    Attributes:
        start_time: Linux: clock ticks since boot; elsewhere seconds since the epoch. Compared only.
        ended: a zombie, or being taken down: it does nothing any more.
    """

    __slots__ = ("ended", "group", "name", "parent", "pid", "start_time", "stopped")

    def __init__(
        self, pid: int, parent: int, group: int, start_time: int, name: str, *, ended: bool, stopped: bool
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.start_time = start_time
        self.name = name
        self.ended = ended
        self.stopped = stopped


def find(pid: int) -> Process | None:
    """Look one process up; None when there is none.

    Raises:
        OSError: could not look.
    """
    if not sys.platform.startswith("linux"):
        return next((process for process in _from_ps("-p", str(pid)) if process.pid == pid), None)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return _parse_stat(file.read())
    except (FileNotFoundError, ProcessLookupError):
        return None


def everything() -> list[Process]:
    """All processes that can be seen; not one instant, so one that moves in the table may be missed.

    Raises:
        OSError: could not look.
    """
    if not sys.platform.startswith("linux"):
        return _from_ps("-ax")
    found = (find(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def descendants(of: int, table: list[Process]) -> list[Process]:
    """What `of` started and what those started, living ones, parents first."""
    by_parent: dict[int, list[Process]] = {}
    for process in table:
        by_parent.setdefault(process.parent, []).append(process)
    order: list[Process] = []
    seen, frontier = {of}, [of]
    while frontier:
        for process in by_parent.get(frontier.pop(0), ()):
            if process.pid not in seen:
                seen.add(process.pid)
                frontier.append(process.pid)
                order.append(process)
    return [process for process in order if not process.ended]


def members(group: int, table: list[Process]) -> list[Process]:
    """What belongs to a process group, living ones."""
    return [process for process in table if process.group == group and not process.ended]


def _parse_stat(line: bytes) -> Process:
    """Read /proc/PID/stat; the name may hold anything, spaces and brackets too."""
    head, _, tail = line.rpartition(b")")
    pid, _, name = head.partition(b" (")
    fields = tail.split()  # from field 3 (state) on
    return Process(
        pid=int(pid),
        parent=int(fields[1]),
        group=int(fields[2]),
        start_time=int(fields[19]),
        name=name.decode("utf-8", "replace"),
        ended=fields[0] in (b"Z", b"X", b"x") or bool(int(fields[6]) & EXITING),
        stopped=fields[0] in (b"T", b"t"),
    )


def _from_ps(*which: str) -> list[Process]:
    """Ask `ps`, where there is no /proc (macOS)."""
    import subprocess
    import time

    command = ["ps", *which, "-o", "pid=,ppid=,pgid=,stat=,lstart=,comm="]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": os.defpath}
    )
    if answer.returncode not in (0, 1):  # 1: nothing selected
        raise OSError(f"ps: {answer.stderr.strip()}")
    processes = []
    for line in answer.stdout.splitlines():
        pid, parent, group, state, *started, name = line.split(None, 9)
        start_time = int(time.mktime(time.strptime(" ".join(started), "%a %b %d %H:%M:%S %Y")))
        facts = (int(pid), int(parent), int(group), start_time, os.path.basename(name))
        processes.append(Process(*facts, ended=state.startswith("Z"), stopped=state.startswith("T")))
    return processes
