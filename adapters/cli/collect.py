"""Lists and removes checkpoints and isolated folders that no fact names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ...application.collect_garbage import Collected, CollectGarbage, Garbage
from . import documents
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .persons import require_person
from .runtimes import reading, require_store, writing

DAY_SECONDS: Final = 86_400
SHOWN_MAX: Final = 50


def collect(out: Output, store: Path, older_than_days: float, folder: str | None, *, delete: bool) -> int:
    """List, and remove where that was asked for; returns the exit status."""
    require_store(store)
    also = () if folder is None else (os.path.realpath(folder),)
    collected: Collected | None = None
    with writing(store) if delete else reading(store) as runtime:
        if delete:
            require_person(runtime)
        gc: CollectGarbage = runtime.parts.collect_garbage()
        garbage = gc.look(int(older_than_days * DAY_SECONDS), also)
        if delete:
            collected = gc(garbage)
    _say(out, garbage, collected)
    code = ExitCode.CORRUPTION if garbage.unread else ExitCode.BUSY if collected and collected.left else ExitCode.DONE
    members = {
        "deleted": delete,
        "checkpoints": [
            {"ref": one.checkpoint.ref, "folder": one.folder, "made_at": one.made_at} for one in garbage.checkpoints
        ],
        "folders": [{"path": one.path, "made_at": one.made_at} for one in garbage.folders],
        "accepted": garbage.kept,
        "of_other_stores": garbage.foreign,
        "not_looked": [{"folder": place, "why": why} for place, why in garbage.not_looked],
        "unread": list(garbage.unread),
        "removed": 0 if collected is None else collected.checkpoints + collected.folders,
        "left": [] if collected is None else [{"what": what, "why": why} for what, why in collected.left],
        "exit_code": int(code),
    }
    out.document(documents.GC, documents.filled(documents.GC, members))
    return code


def _say(out: Output, garbage: Garbage, collected: Collected | None) -> None:
    for run_id in garbage.unread[:SHOWN_MAX]:
        out.say(f"Run {one_line(run_id)} cannot be read, and may name any of them: nothing is garbage.")
    for one in garbage.checkpoints[:SHOWN_MAX]:
        out.say(f"checkpoint {one_line(one.checkpoint.ref)} of {one_line(one.folder)}, made {one.made_at}")
    for folder in garbage.folders[:SHOWN_MAX]:
        out.say(f"folder {one_line(folder.path)}, last changed {folder.made_at}")
    out.say(
        f"{len(garbage.checkpoints)} checkpoints and {len(garbage.folders)} folders are named by no fact;"
        f" of the checkpoints that were found, {garbage.kept} are,"
        f" and {garbage.foreign} are of other stores or were captured by hand."
    )
    for place, why in garbage.not_looked[:SHOWN_MAX]:
        out.say(f"Not looked at, so what is kept there is not counted: {one_line(place)} ({one_line(why)})")
    if collected is None:
        if garbage.checkpoints or garbage.folders:
            out.say("Nothing was removed: give --delete.")
        return
    out.say(f"Removed {collected.checkpoints} checkpoints and {collected.folders} folders.")
    for what, why in collected.left[:SHOWN_MAX]:
        out.say(f"Left: {one_line(what)} ({one_line(why)})")
