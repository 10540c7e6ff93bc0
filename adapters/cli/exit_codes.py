"""What the program's exit status means. SPEC section 17; `docs/cli.md` has the table, and a test compares them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from ...domain.reasons import ParkReason
from ...ports.store_keeping import Trust


class ExitCode(IntEnum):
    """The exit status of every command; one that a signal stopped has 128 and the signal's number instead."""

    DONE = 0
    RUN_FAILED = 1
    USAGE = 2
    PARKED = 3
    CORRUPTION = 4
    BUSY = 5


MEANINGS: Final = {
    ExitCode.DONE: "done",
    ExitCode.RUN_FAILED: "the run failed or was cancelled, or the program itself failed",
    ExitCode.USAGE: "usage: something that was given cannot be used; nothing was changed",
    ExitCode.PARKED: "parked, or (status --fail-if-unsettled) something is unsettled",
    ExitCode.CORRUPTION: "corruption: something that is stored cannot be what was written, or its end is missing",
    ExitCode.BUSY: "busy or fenced, or the store could not be looked at: nothing is known, try again",
}

_CORRUPTION: Final = frozenset(
    {
        ParkReason.SOURCE_RUN_UNREADABLE,
        ParkReason.RUNTIME_LEDGER_UNREADABLE,
        ParkReason.LEDGER_BEHIND_ANCHOR,
        ParkReason.RUNTIME_IDENTITY_MISMATCH,
        ParkReason.PROTOCOL_MARKER_INVALID,
        ParkReason.TERMINAL_REPAIR_FAILED,
        ParkReason.TOOL_RECOVERY_CORRUPTION,
        ParkReason.RUNTIME_LINEAGE_CYCLE,
        ParkReason.RUNTIME_LINEAGE_MISSING,
        ParkReason.RUNTIME_LINEAGE_START_MISMATCH,
        ParkReason.RUNTIME_LINEAGE_REPLAY_MISMATCH,
        ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH,
        ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH,
    }
)
_OWNED: Final = frozenset({ParkReason.SESSION_BUSY, ParkReason.OWNER_FENCED})


def exit_code_of_trust(trust: Trust) -> ExitCode:
    """The status for looking at a store: one whose end may be lost is never reported as in order (F1)."""
    return ExitCode.CORRUPTION if trust.end_may_be_lost else ExitCode.DONE


def exit_code_of_park(codes: Iterable[str]) -> ExitCode:
    """The status for a parked run.

    While another process works on the session, what else is found is only a run that has not ended: busy outweighs all.
    """
    found = set(codes)
    if found & _OWNED:
        return ExitCode.BUSY
    if found & _CORRUPTION:
        return ExitCode.CORRUPTION
    return ExitCode.BUSY if ParkReason.STORE_UNAVAILABLE in found else ExitCode.PARKED
