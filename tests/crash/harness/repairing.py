"""A program that repairs everything that the dead left, as a host does at its start: no command of the CLI does.

The composition, the store and the failpoints are the real ones; only the command comes from here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.application import repair_order


def repair(store: Path, batch_max: int) -> None:
    """Repair, so many sessions in one transaction, and print what became of them."""
    repair_order.BATCH_MAX = batch_max
    with OpenedStore(Settings(store)) as runtime:
        report = runtime.parts.repair_everything()()
    said = {"closed": report.runs_closed, "claims": report.claims_repaired, "nothing_open": report.nothing_open}
    others = {"alive": report.alive, "quarantined": report.quarantined_count, "taken": report.taken_by_others}
    sys.stdout.write(f"{json.dumps({**said, **others})}\n")


if __name__ == "__main__":
    repair(Path(sys.argv[1]), int(sys.argv[2]))
