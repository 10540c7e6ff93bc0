"""Repair while a host opens: strictly before it is ready. SPEC sections 11 and 15, ADR 0041."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from anyio.lowlevel import checkpoint

from ..domain.errors import SafepointError
from ..domain.identifiers import SessionId
from .in_thread import in_thread
from .repair_everything import RepairEverything
from .repair_report import RepairReport, RepairStep
from .repair_session import Repaired

REPAIRS_MAX = 2
"""How often a session is tried before a host gives up."""


class RepairIncomplete(SafepointError):
    """Some sessions could not be repaired, so the host is not ready: it takes no work over an open end.

    Attributes:
        report: names them, each with its error.
    """

    def __init__(self, report: RepairReport) -> None:
        first = report.failed[0]
        super().__init__(
            f"{len(report.failed)} sessions could not be repaired; the first is {first.session_id}: {first.error}"
        )
        self.report = report


async def repair_before_ready(
    repair: RepairEverything,
    report: RepairReport,
    progress: Callable[[RepairStep], None],
    awaited: Callable[[Repaired], bool],
) -> list[Repaired]:
    """Repair a batch at a time, so that whoever cancels waits for one batch at most; what failed is tried once more.

    Args:
        report: filled as it goes on.
        progress: told after each batch; what it raises stops repair.
        awaited: of which closed runs something is to be begun.

    Returns:
        Those that are awaited, and stay owned.

    Raises:
        StoreError: as `RepairEverything`.
        RepairIncomplete: some sessions could not be repaired, twice.
    """
    wanted: dict[SessionId, Repaired] = {}
    await checkpoint()
    for tried in range(REPAIRS_MAX):
        steps = repair.again(report, awaited) if tried else repair.steps(report, awaited)
        while (step := await in_thread(partial(next, steps, None))) is not None:
            progress(step)
            wanted |= {one.session_id: one for one in step.repaired if awaited(one)}
            await checkpoint()
        if not report.failed:
            return list(wanted.values())
    raise RepairIncomplete(report)
