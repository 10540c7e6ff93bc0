"""Makes a process the supervisor of one operation: signals, containment, the lock, then its owner is told.

SPEC section 15.
"""

from __future__ import annotations

import json
import os
import signal

from . import containment, file_lock, operation_proof
from .owner_link import OwnerLink
from .supervision import Supervision

LOCK_PATIENCE_SECONDS = 0.5  # an observer may hold the lock for a moment


def main(settings_text: str) -> None:
    """Become the supervisor of one operation; the owner listens on our standard output."""
    settings = json.loads(settings_text)
    link = OwnerLink(0, 1, int(settings["owner_pid"]))
    alarm = _hear_signals()
    try:
        tree = containment.establish(str(settings["containment"]))
        lock = file_lock.take(str(settings["lock"]), LOCK_PATIENCE_SECONDS)
        if lock is None:
            raise OSError("an earlier delivery of this operation still runs")
        operation_proof.write(lock, settings, let_go=False)
    except OSError as error:
        link.send({"is": "unavailable", "detail": str(error)})
        link.flush_all()
        return
    supervision = Supervision(settings, link, lock, tree, alarm)

    def asked_to_end(number: int, frame: object) -> None:
        supervision.asked_to_end = True

    signal.signal(signal.SIGTERM, asked_to_end)
    signal.signal(signal.SIGINT, asked_to_end)
    try:
        supervision.run()
    except BaseException:
        _outlive_everything()  # a mistake of ours must not free the lock while something runs
        raise


def _outlive_everything() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _hear_signals() -> int:
    """Make signals wake the loop; whatever the owner ignored or blocked is heard here."""
    alarm, wake = os.pipe()
    os.set_blocking(alarm, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return alarm
