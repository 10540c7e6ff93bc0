"""A program that has imported the command line program and forks a process per command: its start then costs little.

Each process runs the program from its entry, with its own arguments, environment, folder and files. To the product it
is a process as any other: its own pid, locks, store and death. Requests and answers are JSON lines.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from typing import Any

from safepoint.__main__ import main

IMPORTED_LATE = (
    *("safepoint.adapters.cli.main", "safepoint.adapters.cli.run_turn", "safepoint.adapters.cli.resume_session"),
    "safepoint.adapters.cli.take_session_over",
    *("safepoint.adapters.models.scripted", "safepoint.adapters.tools.builtin.record_effect"),
    *("safepoint.adapters.tools.builtin.run_shell", "safepoint.adapters.tools.builtin.writing"),
    *("safepoint.adapters.tools.catalog", "anyio._backends._asyncio"),
)
"""What the program imports when a command needs it."""


def become(command: dict[str, Any]) -> None:
    """Be the program in this process; never returns."""
    os.setpgid(0, 0)
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    files = (
        (os.devnull, os.O_RDONLY),
        (command["out"], os.O_WRONLY | os.O_CREAT),
        (command["err"], os.O_WRONLY | os.O_CREAT),
    )
    for descriptor, (path, flags) in enumerate(files):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = ["safepoint", *command["arguments"]]
    main()


def answer(request: dict[str, Any]) -> object:
    """Fork, or say how a process ended (None while it runs)."""
    if "reap" in request:
        pid, status = os.waitpid(request["reap"], os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None
    pid = os.fork()
    if pid == 0:
        become(request)
    return pid


if __name__ == "__main__":
    for module in IMPORTED_LATE:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a process that collects garbage would copy every page of what was imported
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(answer(json.loads(line)))}\n")
        sys.stdout.flush()
