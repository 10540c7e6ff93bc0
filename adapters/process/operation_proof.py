"""What the lock file of an operation says, which decides what a free lock proves. SPEC section 15.

Who holds it, in which frame, which file it is (a copy proves nothing), and whether it was released with nothing left:
a supervisor that was killed frees its lock, too, while what it started may have closed the duplicate and run on.
"""

from __future__ import annotations

import json
import os

from . import file_lock, process_table


def write(lock: int, settings: dict[str, object], *, let_go: bool) -> None:
    """Write the proof of this process into the file that it has locked."""
    me = process_table.find(os.getpid())
    proof = {
        "operation_id": settings["operation_id"],
        "pid": os.getpid(),
        "process_start_time": None if me is None else me.start_time,
        "host": settings["host"],
        "boot_id": settings["boot_id"],
        "pid_namespace": settings["pid_namespace"],
        "inode": os.fstat(lock).st_ino,
        "containment": settings["containment"],
        "let_go": let_go,
    }
    file_lock.write_content(lock, json.dumps(proof).encode("ascii") + b"\n")


def read(seen: file_lock.LockLook, operation_id: str) -> dict[str, object] | None:
    """The proof, or None when the file is not the one that a supervisor of this operation locked."""
    try:
        proof = json.loads(seen.content)
    except ValueError:
        return None
    if not isinstance(proof, dict) or proof.get("operation_id") != operation_id or proof.get("inode") != seen.inode:
        return None
    return proof
