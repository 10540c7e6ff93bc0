"""What a supervised call left behind, as the record keeps it. SPEC section 15."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.events.event import Json
from ...ports.background_work import MAIN_PROCESS, PROCESSES
from ...ports.supervised import ProcessInfo, SupervisedExit
from ...ports.tool_catalog import LeftRunning

PROCESSES_MAX = 20


def left_running(end: SupervisedExit) -> LeftRunning | None:
    """Return the handle of what goes on after the main process has ended, or None when all of it is over."""
    if not end.left_running:
        return None
    return LeftRunning({MAIN_PROCESS: False, PROCESSES: process_list(end.living)}, detached=False)


def detached_main(processes: Sequence[ProcessInfo]) -> LeftRunning:
    """Return the handle of a main process that nobody waits for."""
    return LeftRunning({MAIN_PROCESS: True, PROCESSES: process_list(processes)}, detached=True)


def process_list(processes: Sequence[ProcessInfo]) -> list[Json]:
    """Show processes to people and models, at most `PROCESSES_MAX` of them."""
    return [{"pid": process.pid, "name": process.name} for process in processes[:PROCESSES_MAX]]
