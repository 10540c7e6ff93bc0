"""Whether this process was started by a tool, so that what it says is no person's word. SPEC section 10.

Best effort: a program that a model may start runs as its user, and can do what its user can.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from . import file_lock, process_table

GENERATIONS_MAX: Final = 256
_LOCK: Final = ".lock"
_LOCKS: Final = ".locks"


def started_by_operation(folder: Path) -> str | None:
    """The operation whose supervisor is an ancestor of this process, None where none is seen.

    Whichever store that operation is of, where the open files of other processes can be seen (Linux): a word about a
    folder or about what a person kept is given without the store of the run.

    Args:
        folder: `<store>.locks` of the store that was named.
    """
    try:
        ancestors = _ancestors()
        locks = [*folder.glob(f"*{_LOCK}"), *_held_by(ancestors)]
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


def _held_by(ancestors: set[tuple[int, int]]) -> Iterator[Path]:
    """Lock files of any store that these processes have open, as far as that may be looked at."""
    for pid, _ in ancestors:
        with contextlib.suppress(OSError):
            for descriptor in list(Path(f"/proc/{pid}/fd").iterdir()):
                with contextlib.suppress(OSError):
                    file = descriptor.readlink()
                    if file.suffix == _LOCK and file.parent.suffix == _LOCKS:
                        yield file


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
