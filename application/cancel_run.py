"""A person stops a run: live, in this process or another, or left behind by a dead one. SPEC section 7 and F4."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import dataclass
from enum import StrEnum

from anyio import RunFinishedError

from ..domain.commands import Append
from ..domain.errors import StoreDamaged, WriteRefused
from ..domain.events.run import CancelRequested
from ..domain.identifiers import RunId, SessionId
from ..domain.reasons import WriteRefusal
from ..ports.handover import Message
from .commands_from_elsewhere import Announce, AtOwner, text_of
from .ledger import Ledger
from .live_runs import LiveRuns
from .ownership import Owned, SessionOwnership
from .repair_session import Repair, RepairKind
from .run_turn import SessionQuarantined
from .spines import Spines

COMMAND = "cancel"


class Cancelled(StrEnum):
    """What a request to stop came to."""

    STOPPING = "stopping"
    """Its living owner was told; it ends the run when its live tools are done, within their bound."""
    CLOSED = "closed"
    """Nobody executes it any more; the run, or the claim that never started, was ended as cancelled."""
    NOTHING_OPEN = "nothing_open"
    """No run of the session is open. Stopping twice is stopping once."""


@dataclass(frozen=True, slots=True)
class CancelResult:
    """What became of the request, and of which run."""

    cancelled: Cancelled
    run_id: RunId | None = None


class CancelRun:
    """Stops the open run of a session."""

    def __init__(
        self,
        ledger: Ledger,
        ownership: SessionOwnership,
        repair: Repair,
        live_runs: LiveRuns,
        at_owner: AtOwner,
        spines: Spines,
    ) -> None:
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._live_runs = live_runs
        self._at_owner = at_owner
        self._spines = spines

    def __call__(
        self, session_id: SessionId, by: str, announce: Announce = lambda owner, seconds: None
    ) -> CancelResult:
        """Stop whatever is open in a session. Not for the event loop of a live run: use `LiveRun.cancel` there.

        Args:
            by: who stops it, for the record.
            announce: told before a living owner is waited for.

        Raises:
            SessionBusy: its owner lives and did not answer (OwnerSilent), could not be looked at, or is just about to
                begin a run.
            SessionQuarantined: its open run is damaged; a person may abandon it.
            WriteRefused, FailedAtOwner: its living owner could not do it.
            StoreError: it could not be read or written.
        """
        return self._at_owner(
            session_id, COMMAND, {"by": by}, here=lambda: self._here(session_id, by), read=_read, announce=announce
        )

    def _here(self, session_id: SessionId, by: str) -> CancelResult:
        live = self._live_runs.get(session_id)
        if live is not None:
            try:
                stopping = live.cancel_from_thread(by)
                return CancelResult(Cancelled.STOPPING if stopping else Cancelled.NOTHING_OPEN, live.recorder.run_id)
            except (RunFinishedError, CancelledError):
                pass  # its event loop is gone, and nobody executes it any more
        return self._close(session_id, by)

    def _close(self, session_id: SessionId, by: str) -> CancelResult:
        with self._ownership.held(session_id) as owned:
            self._record(owned, by)
            repaired = self._repair(owned, cancelled_by=by)
        if repaired.kind is RepairKind.QUARANTINED:
            raise SessionQuarantined(repaired)
        closed = repaired.kind in (RepairKind.RUN_CLOSED, RepairKind.CLAIM_REPAIRED)
        return CancelResult(Cancelled.CLOSED if closed else Cancelled.NOTHING_OPEN, repaired.run_id)

    def _record(self, owned: Owned, by: str) -> None:
        """Say first that a person stopped it, so that it ends as cancelled even if this process dies now."""
        try:
            head = self._ledger.session(owned.session_id).head
            run = None if head is None else self._ledger.run(head.run_id)
        except StoreDamaged:
            return  # repair says so
        if run is None or run.opening is None or not run.open or run.cancel_requested is not None:
            return
        fact = CancelRequested(**self._spines.run(run.opening.identity), by=by)
        try:
            self._ledger.execute(Append(*owned.guard, run.opening.run_id, (fact,)))
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.RUN_SEALED:
                raise

    def answer(self, session_id: SessionId, message: Message) -> Message:
        """Answer a request that another process handed over: the same use case, in the owner's process."""
        result = self._here(session_id, text_of(message, "by"))
        return {"cancelled": result.cancelled.value, "run_id": result.run_id}


def _read(told: Message) -> CancelResult:
    run_id = told["run_id"]
    return CancelResult(Cancelled(str(told["cancelled"])), None if run_id is None else RunId(str(run_id)))
