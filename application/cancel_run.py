"""A person stops a run: live, in this process or another, or left behind by a dead one. SPEC section 7 and F4."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import dataclass
from enum import StrEnum

from anyio import RunFinishedError

from ..domain.commands import Append
from ..domain.errors import SafepointError, StoreDamaged, StoreError, WriteRefused
from ..domain.events.run import CancelRequested
from ..domain.identifiers import RunId, SessionId
from ..domain.reasons import WriteRefusal
from ..ports.handover import Handover, Message, Reply
from ..ports.incarnations import Incarnation, Liveness
from .ledger import Ledger
from .live_runs import LiveRuns
from .ownership import Owned, SessionBusy, SessionOwnership
from .repair_session import RepairKind, RepairSession
from .run_turn import SessionQuarantined
from .spines import Spines

ANSWER_SECONDS = 30.0
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
        repair: RepairSession,
        live_runs: LiveRuns,
        handover: Handover,
        spines: Spines,
    ) -> None:
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._live_runs = live_runs
        self._handover = handover
        self._spines = spines

    def __call__(self, session_id: SessionId, by: str) -> CancelResult:
        """Stop whatever is open in a session. Not for the event loop of a live run: use `LiveRun.cancel` there.

        Args:
            by: who stops it, for the record.

        Raises:
            SessionBusy: its owner lives and did not answer, or could not be looked at, or is just about to begin a run.
            SessionQuarantined: its open run is damaged; a person may abandon it.
            StoreError: it could not be read or written.
        """
        row, owner, liveness = self._ownership.owner_of(session_id)
        elsewhere = row is not None and row.incarnation_id is not None
        if elsewhere and not self._is_mine(owner) and owner is not None and liveness is Liveness.ALIVE:
            return self._ask(owner, session_id, by)
        return self._here(session_id, by)

    def _is_mine(self, owner: Incarnation | None) -> bool:
        return owner is not None and self._ownership.is_mine(owner.incarnation_id)

    def _ask(self, owner: Incarnation, session_id: SessionId, by: str) -> CancelResult:
        request = {"command": COMMAND, "session_id": session_id, "by": by}
        answer = self._handover.ask(owner, request, ANSWER_SECONDS)
        told = answer.message if isinstance(answer, Reply) else {}
        if told.get("cancelled") not in set(Cancelled):
            raise SessionBusy(session_id, owner, Liveness.ALIVE)
        run_id = told.get("run_id")
        return CancelResult(Cancelled(str(told["cancelled"])), RunId(run_id) if isinstance(run_id, str) else None)

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
        owned = self._ownership.own(session_id)
        try:
            self._record(owned, by)
            repaired = self._repair(owned, cancelled_by=by)
        except StoreError:
            self._ownership.keep(owned)  # what was written is not known
            raise
        except BaseException:
            self._ownership.release(owned)
            raise
        self._ownership.release(owned)
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
        guard = (owned.session_id, owned.incarnation_id, owned.epoch)
        try:
            self._ledger.execute(Append(*guard, run.opening.run_id, (fact,)))
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.RUN_SEALED:
                raise

    def answer(self, message: Message) -> Message:
        """Answer a request that another process handed over: the same use case, in the owner's process."""
        session_id, by = message.get("session_id"), message.get("by")
        if message.get("command") != COMMAND or not isinstance(session_id, str) or not isinstance(by, str):
            return {"error": "unknown_request"}
        try:
            result = self._here(SessionId(session_id), by)
        except SafepointError as error:
            return {"error": type(error).__name__}
        return {"cancelled": result.cancelled.value, "run_id": result.run_id}
