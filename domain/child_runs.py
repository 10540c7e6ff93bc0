"""The handle of a child run: its id, which T1 of the call that starts it records before it exists. SPEC section 11."""

from __future__ import annotations

from typing import Final

from .events.event import Json
from .identifiers import ID_LENGTH_MAX, RunId

CHILD_RUN: Final = "child_run"
"""Member of a dispatch's evidence: the id of the run that the call starts in this store, in a session of its own."""
_RESERVED: Final = "reserved"
"""Member beside it: the id was made for this call, and no run can have it but the one that the call itself begins."""


def child_run_evidence(run_id: RunId) -> dict[str, Json]:
    """What a tool that starts a child run in a way of its own gives as its evidence, before it does."""
    return {CHILD_RUN: run_id}


def reserved_child_run(run_id: RunId) -> dict[str, Json]:
    """What T1 records of a call whose tool is declared to start a child run."""
    return {CHILD_RUN: run_id, _RESERVED: True}


def child_run_of(evidence: Json) -> RunId | None:
    """The child run that a call may have started, None where it recorded none."""
    named = evidence.get(CHILD_RUN) if isinstance(evidence, dict) else None
    return RunId(named) if isinstance(named, str) and 0 < len(named) <= ID_LENGTH_MAX else None


def is_reserved(evidence: Json) -> bool:
    """Whether the absence of the child run proves that the call never began one, in a store that has all facts."""
    return isinstance(evidence, dict) and evidence.get(_RESERVED) is True
