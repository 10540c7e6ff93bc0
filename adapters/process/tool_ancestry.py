"""Whether this process was started by a tool, so that what it says is no person's word. SPEC section 10.

Best effort: a program that a model may start runs as its user, and can do what its user can.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from . import file_lock, process_table

GENERATIONS_MAX: Final = 256


def started_by_operation(folder: Path) -> str | None:
    """The operation whose supervisor is an ancestor of this process, None where none is seen.

    Args:
        folder: `<store>.locks`.
    """
    try:
        ancestors = _ancestors()
        locks = list(folder.glob("*.lock"))
    except OSError:
        return None
    return next((found for lock in locks if (found := _supervised_by(lock, ancestors)) is not None), None)


def _ancestors() -> set[tuple[int, int]]:
    """Pids and start times of the processes that this one descends from, itself included."""
    found: set[tuple[int, int]] = set()
    pid = os.getpid()
    while len(found) < GENERATIONS_MAX and (process := process_table.find(pid)) is not None:
        found.add((process.pid, process.start_time))
        pid = process.parent
    return found


def _supervised_by(lock: Path, ancestors: set[tuple[int, int]]) -> str | None:
    try:
        seen = file_lock.look(str(lock))
        proof = json.loads(seen.content)
    except (OSError, ValueError):
        return None
    if not seen.held or not isinstance(proof, dict) or "operation_id" not in proof:
        return None
    holder = (proof.get("pid"), proof.get("process_start_time"))
    return str(proof["operation_id"]) if holder in ancestors else None
