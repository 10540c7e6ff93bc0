"""Ending one process of the host, and never another that has got its pid. SPEC section 15."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from . import process_table


def end_process(
    pid: int, start_time: int, *, is_over: Callable[[], bool], grace_seconds: float, timeout_seconds: float
) -> None:
    """Ask the process to end, kill it when it does not, and return when `is_over` or after `timeout_seconds`.

    Nothing is signalled unless the process with this pid has this start time, or where the system forbids it.
    """
    now = time.monotonic()
    if not signal_exactly(pid, start_time, signal.SIGTERM):
        return
    kill_at, deadline = now + grace_seconds, now + timeout_seconds
    if _is_stopped(pid):
        kill_at = now  # it cannot hear, and must not be let go on
    killed = False
    while not is_over() and time.monotonic() < deadline:
        if not killed and time.monotonic() >= kill_at:
            killed = True
            signal_exactly(pid, start_time, signal.SIGKILL)
        time.sleep(0.02)


def signal_exactly(pid: int, start_time: int, number: signal.Signals) -> bool:
    """Send a signal to the process with this pid and start time; False when there is none that we may signal."""
    handle = _open_handle(pid)
    try:
        process = process_table.find(pid)  # after the handle: what is checked is what is signalled
        if process is None or process.start_time != start_time or process.ended:
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def _open_handle(pid: int) -> int | None:
    """A descriptor that means this process for good (Linux), or None where there are none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _is_stopped(pid: int) -> bool:
    try:
        process = process_table.find(pid)
    except OSError:
        return False
    return process is not None and process.stopped
